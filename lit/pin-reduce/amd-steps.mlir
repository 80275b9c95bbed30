// The same tree on AMD, by the exchanges that a wave has.
// RUN: bitstable-opt %s --pass-pipeline=pin-reduce -split-input-file | FileCheck %s

// A whole wave of 64: row_shr 1, 2, 4, 8 (273, 274, 276, 280), row_bcast 15 and 31 (322, 323), and
// lane 63 has the sum. The value that comes from the lower lane stands on the left.
// CHECK-LABEL: tt.func @wave64
// CHECK: %[[S:.*]] = rocdl.update.dpp %{{.*}}, %[[X:.*]] with 273, 15, 15
// CHECK: llvm.intr.experimental.constrained.fadd %[[S]], %[[X]] tonearest ignore
// CHECK: rocdl.update.dpp {{.*}} with 274
// CHECK: rocdl.update.dpp {{.*}} with 276
// CHECK: rocdl.update.dpp {{.*}} with 280
// CHECK: rocdl.update.dpp {{.*}} with 322
// CHECK: rocdl.update.dpp {{.*}} with 323
// CHECK: rocdl.readlane
// CHECK-NOT: llvm.fadd
#wave = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func @wave64(%x: tensor<64xf32, #wave>) -> f32 {
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64xf32, #wave>) -> f32
    tt.return %sum : f32
  }
}

// -----

// A wave of 32 has no row broadcasts: row_xmask 1, 2, 4, 8 (353, 354, 356, 360), then the other row.
// CHECK-LABEL: tt.func @wave32
// CHECK: rocdl.update.dpp {{.*}} with 353
// CHECK: rocdl.update.dpp {{.*}} with 354
// CHECK: rocdl.update.dpp {{.*}} with 356
// CHECK: rocdl.update.dpp {{.*}} with 360
// CHECK: permlanex16
#wave = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1201", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @wave32(%x: tensor<32xf32, #wave>) -> f32 {
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #wave>) -> f32
    tt.return %sum : f32
  }
}
