// Every operand of a pinned reduction is shielded, once; an unordered reduction is left alone.
// RUN: bitstable-opt %s --pass-pipeline=shield-reduce | FileCheck %s
// RUN: bitstable-opt %s --pass-pipeline=shield-reduce,shield-reduce | FileCheck %s
// RUN: bitstable-opt %s --pass-pipeline=shield-reduce,pin-reduce | FileCheck %s --check-prefix=PINNED
// PINNED-NOT: bitstable.pin
// PINNED: "tt.reduce"
// PINNED-NOT: "tt.reduce"

// CHECK: %[[X:.*]] = tt.extern_elementwise %arg0 {{.*}}symbol = "bitstable.pin"
// CHECK-NOT: bitstable.pin
// CHECK: "tt.reduce"(%[[X]])
// CHECK: tt.order = "inner_tree"
// CHECK: "tt.reduce"(%arg0)
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%x: tensor<32xf32, #b>) -> (f32, f32) {
    %pinned = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #b>) -> f32
    %free = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32xf32, #b>) -> f32
    tt.return %pinned, %free : f32, f32
  }
}
