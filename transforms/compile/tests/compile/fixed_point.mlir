module {
  func.func public @main(%0: tensor<1xf32>) -> (tensor<1xf32>) {
    %1 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %2 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %37:4 = "stablehlo.while"(%1, %2, %0, %0) ({
    ^bb0(%3: tensor<i64>, %4: tensor<i1>, %5: tensor<1xf32>, %6: tensor<1xf32>):
    %7 = "stablehlo.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %8 = "stablehlo.compare"(%3, %7) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %9 = "stablehlo.not"(%4) : (tensor<i1>) -> tensor<i1>
    %10 = "stablehlo.and"(%8, %9) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%10) : (tensor<i1>) -> ()
    }, {
    ^bb0(%11: tensor<i64>, %12: tensor<i1>, %13: tensor<1xf32>, %14: tensor<1xf32>):
    %15 = "stablehlo.cosine"(%13) : (tensor<1xf32>) -> tensor<1xf32>
    %16 = "stablehlo.multiply"(%15, %14) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %17 = "stablehlo.constant"() {value = dense<0x0000000000000000> : tensor<f64>} : () -> tensor<f64>
    %18 = "stablehlo.constant"() {value = dense<0x0000000000000000> : tensor<f64>} : () -> tensor<f64>
    %19 = "stablehlo.subtract"(%16, %13) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %20 = "stablehlo.abs"(%19) : (tensor<1xf32>) -> tensor<1xf32>
    %21 = "stablehlo.constant"() {value = dense<0x00000000> : tensor<f32>} : () -> tensor<f32>
    %22 = "stablehlo.reduce"(%20, %21) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1xf32>, tensor<f32>) -> tensor<f32>
    %23 = "stablehlo.convert"(%22) : (tensor<f32>) -> tensor<f64>
    %24 = "stablehlo.maximum"(%17, %23) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %25 = "stablehlo.abs"(%16) : (tensor<1xf32>) -> tensor<1xf32>
    %26 = "stablehlo.constant"() {value = dense<0x00000000> : tensor<f32>} : () -> tensor<f32>
    %27 = "stablehlo.reduce"(%25, %26) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1xf32>, tensor<f32>) -> tensor<f32>
    %28 = "stablehlo.convert"(%27) : (tensor<f32>) -> tensor<f64>
    %29 = "stablehlo.maximum"(%18, %28) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %30 = "stablehlo.constant"() {value = dense<0x3FF0000000000000> : tensor<f64>} : () -> tensor<f64>
    %31 = "stablehlo.add"(%29, %30) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %32 = "stablehlo.divide"(%24, %31) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %33 = "stablehlo.constant"() {value = dense<0x3EB0C6F7A0B5ED8D> : tensor<f64>} : () -> tensor<f64>
    %34 = "stablehlo.compare"(%32, %33) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %35 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %36 = "stablehlo.add"(%11, %35) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "stablehlo.return"(%36, %34, %16, %14) : (tensor<i64>, tensor<i1>, tensor<1xf32>, tensor<1xf32>) -> ()
    }) : (tensor<i64>, tensor<i1>, tensor<1xf32>, tensor<1xf32>) -> (tensor<i64>, tensor<i1>, tensor<1xf32>, tensor<1xf32>)
    %38 = "stablehlo.constant"() {value = dense<0x7FC00000> : tensor<1xf32>} : () -> tensor<1xf32>
    %39 = "stablehlo.select"(%37#1, %37#2, %38) : (tensor<i1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    "func.return"(%39) : (tensor<1xf32>) -> ()
  }
}
