module {
  func.func public @main(%0: tensor<3xf32>) -> (tensor<4xf32>) {
    %1 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<1xf32>} : () -> tensor<1xf32>
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %3 = "stablehlo.constant"() {value = dense<0x00000000> : tensor<3x1xf32>} : () -> tensor<3x1xf32>
    %24:4 = "stablehlo.while"(%2, %1, %3, %0) ({
    ^bb0(%4: tensor<i64>, %5: tensor<1xf32>, %6: tensor<3x1xf32>, %7: tensor<3xf32>):
    %8 = "stablehlo.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %9 = "stablehlo.compare"(%4, %8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    "stablehlo.return"(%9) : (tensor<i1>) -> ()
    }, {
    ^bb0(%10: tensor<i64>, %11: tensor<1xf32>, %12: tensor<3x1xf32>, %13: tensor<3xf32>):
    %14 = "stablehlo.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %15 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %16 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %17 = "stablehlo.dynamic_slice"(%13, %10) {slice_sizes = array<i64: 1>} : (tensor<3xf32>, tensor<i64>) -> tensor<1xf32>
    %18 = "stablehlo.add"(%11, %17) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %19 = "stablehlo.multiply"(%11, %17) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %20 = "stablehlo.add"(%10, %15) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %21 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %22 = "stablehlo.reshape"(%19) : (tensor<1xf32>) -> tensor<1x1xf32>
    %23 = "stablehlo.dynamic_update_slice"(%12, %22, %10, %21) : (tensor<3x1xf32>, tensor<1x1xf32>, tensor<i64>, tensor<i64>) -> tensor<3x1xf32>
    "stablehlo.return"(%20, %18, %23, %13) : (tensor<i64>, tensor<1xf32>, tensor<3x1xf32>, tensor<3xf32>) -> ()
    }) : (tensor<i64>, tensor<1xf32>, tensor<3x1xf32>, tensor<3xf32>) -> (tensor<i64>, tensor<1xf32>, tensor<3x1xf32>, tensor<3xf32>)
    %25 = "stablehlo.reshape"(%24#2) : (tensor<3x1xf32>) -> tensor<3xf32>
    %26 = "stablehlo.concatenate"(%24#1, %25) {dimension = 0 : i64} : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
    "func.return"(%26) : (tensor<4xf32>) -> ()
  }
}
