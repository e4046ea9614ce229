module {
  func.func public @main(%0: tensor<1xf32>) -> (tensor<1xf32>) {
    %31 = "stablehlo.while"(%0) ({
    ^bb0(%1: tensor<1xf32>):
    %2 = "stablehlo.constant"() {value = dense<0x3F800000> : tensor<1xf32>} : () -> tensor<1xf32>
    %3 = "stablehlo.compare"(%1, %2) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %4 = "stablehlo.reshape"(%3) : (tensor<1xi1>) -> tensor<i1>
    "stablehlo.return"(%4) : (tensor<i1>) -> ()
    }, {
    ^bb0(%5: tensor<1xf32>):
    %6 = "stablehlo.constant"() {value = dense<0x40000000> : tensor<1xf32>} : () -> tensor<1xf32>
    %7 = "stablehlo.remainder"(%5, %6) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %8 = "stablehlo.constant"() {value = dense<0x00000000> : tensor<1xf32>} : () -> tensor<1xf32>
    %9 = "stablehlo.compare"(%7, %8) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %10 = "stablehlo.compare"(%7, %8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %11 = "stablehlo.compare"(%6, %8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %12 = "stablehlo.xor"(%10, %11) : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
    %13 = "stablehlo.and"(%9, %12) : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
    %14 = "stablehlo.add"(%7, %6) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %15 = "stablehlo.select"(%13, %14, %7) : (tensor<1xi1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %16 = "stablehlo.constant"() {value = dense<0x3F800000> : tensor<1xf32>} : () -> tensor<1xf32>
    %17 = "stablehlo.compare"(%15, %16) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %18 = "stablehlo.convert"(%17) : (tensor<1xi1>) -> tensor<1xi32>
    %19 = "stablehlo.reshape"(%18) : (tensor<1xi32>) -> tensor<i32>
    %20 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %21 = "stablehlo.maximum"(%19, %20) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %22 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %23 = "stablehlo.minimum"(%21, %22) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %30 = "stablehlo.case"(%23) ({
    ^bb0():
    %24 = "stablehlo.constant"() {value = dense<0x40000000> : tensor<1xf32>} : () -> tensor<1xf32>
    %25 = "stablehlo.divide"(%5, %24) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    "stablehlo.return"(%25) : (tensor<1xf32>) -> ()
    }, {
    ^bb0():
    %26 = "stablehlo.constant"() {value = dense<0x40400000> : tensor<1xf32>} : () -> tensor<1xf32>
    %27 = "stablehlo.multiply"(%5, %26) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %28 = "stablehlo.constant"() {value = dense<0x3F800000> : tensor<1xf32>} : () -> tensor<1xf32>
    %29 = "stablehlo.add"(%27, %28) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    "stablehlo.return"(%29) : (tensor<1xf32>) -> ()
    }) : (tensor<i32>) -> tensor<1xf32>
    "stablehlo.return"(%30) : (tensor<1xf32>) -> ()
    }) : (tensor<1xf32>) -> tensor<1xf32>
    "func.return"(%31) : (tensor<1xf32>) -> ()
  }
}
