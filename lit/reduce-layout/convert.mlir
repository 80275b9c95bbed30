// An operand is converted where that is cheaper than folding it as it lies, within limits.
// RUN: bitstable-opt %s --pass-pipeline='reduce-layout{strategy=convert}' | FileCheck %s
// RUN: bitstable-opt %s --pass-pipeline='reduce-layout{strategy=convert max-registers=10}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REGISTERS
// RUN: bitstable-opt %s --pass-pipeline='reduce-layout{strategy=convert max-shared=1024}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=SHARED
// RUN: bitstable-opt %s --pass-pipeline='reduce-layout{strategy=off}' --remarks 2>&1 | FileCheck %s --check-prefix=OFF
// RUN: not bitstable-opt %s --pass-pipeline='reduce-layout{strategy=best}' 2>&1 | FileCheck %s --check-prefix=CHOICES
// RUN: bitstable-opt %s --pass-pipeline=reduce-layout --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=AUTO

// The conversion of the result, which `pin-reduce` folds into its plan, starts from the new layout.
// CHECK: #[[NEW:.*]] = #ttg.{{.*}}
// CHECK-LABEL: @products
// CHECK: %[[X:.*]] = tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, #[[OLD:[a-z0-9]*]]>
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: %[[MOVED:.*]] = ttg.convert_layout %[[P]] : tensor<64x128xf32, #[[OLD]]> -> tensor<64x128xf32, #[[OTHER:[a-z0-9]*]]>
// CHECK: %[[SUM:.*]] = "tt.reduce"(%[[MOVED]])
// CHECK: ttg.convert_layout %[[SUM]] : tensor<128xf32, #ttg.slice<{dim = 0, parent = #[[OTHER]]}>> -> tensor<128xf32, #
// REGISTERS: convert.mlir:{{[0-9]+}}:{{[0-9]+}}: remark: the operands keep their layout: a conversion takes 32 registers of a thread, and max-registers is 10
// SHARED: remark: the operands keep their layout: a conversion takes 32768 bytes of shared memory, and max-shared is 1024
// OFF-NOT: remark
// OFF-NOT: #linear
// CHOICES: reduce-layout: strategy is auto, renumber, convert or off, not "best"
// AUTO: remark: operands renumbered to #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [1, 32], warpsPerCTA = [16, 1], order = [1, 0]}>: cost {{[0-9]+}} -> {{[0-9]+}}
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [16, 1], order = [1, 0]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [16], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 16 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @products(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %products = arith.mulf %values, %values : tensor<64x128xf32, #tile>
    %sum = "tt.reduce"(%products) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %line = ttg.convert_layout %sum : tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<128xf32, #line>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #line>
    tt.store %to, %line : tensor<128x!tt.ptr<f32>, #line>
    tt.return
  }
}
