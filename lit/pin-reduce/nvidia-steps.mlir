// Each kind of step, alone where that is possible. Axis bit 0 folds first, whatever holds it.
// RUN: bitstable-opt %s --pass-pipeline=pin-reduce -split-input-file | FileCheck %s

// Lanes: butterflies count up. Both lanes of a pair get the sum, so no select is needed.
// CHECK-LABEL: tt.func @lanes
// CHECK-NOT: tt.reduce
// CHECK-NOT: llvm.select
// CHECK: %[[X:.*]] = llvm.extractvalue
// CHECK: %[[M:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[S:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[X]], %[[M]], %{{.*}}
// CHECK: %[[T1:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[X]], %[[S]])
// CHECK: %[[M:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: %[[S:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[T1]], %[[M]], %{{.*}}
// CHECK: %[[T2:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[T1]], %[[S]])
// CHECK: %[[M:.*]] = llvm.mlir.constant(4 : i32)
// CHECK: %[[S:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[T2]], %[[M]], %{{.*}}
// CHECK: %[[T3:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[T2]], %[[S]])
// CHECK: %[[M:.*]] = llvm.mlir.constant(8 : i32)
// CHECK: %[[S:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[T3]], %[[M]], %{{.*}}
// CHECK: %[[T4:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[T3]], %[[S]])
// CHECK: %[[M:.*]] = llvm.mlir.constant(16 : i32)
// CHECK: %[[S:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[T4]], %[[M]], %{{.*}}
// CHECK: %[[T5:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[T4]], %[[S]])
// CHECK-NOT: llvm.fadd
#lanes = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @lanes(%x: tensor<32xf32, #lanes>) -> f32 {
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #lanes>) -> f32
    tt.return %sum : f32
  }
}

// -----

// Registers: neighbours first, and nothing is exchanged.
// CHECK-LABEL: tt.func @registers
// CHECK-NOT: nvvm.shfl
// CHECK: %[[R0:.*]] = llvm.extractvalue %{{.*}}[0]
// CHECK: %[[R1:.*]] = llvm.extractvalue %{{.*}}[1]
// CHECK: %[[R2:.*]] = llvm.extractvalue %{{.*}}[2]
// CHECK: %[[R3:.*]] = llvm.extractvalue %{{.*}}[3]
// CHECK: %[[S01:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[R0]], %[[R1]])
// CHECK: %[[S23:.*]] = llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[R2]], %[[R3]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.add.rn.f"(%[[S01]], %[[S23]])
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @registers(%x: tensor<32x4xf32, #rows>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #rows}>> {
    %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32x4xf32, #rows>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #rows}>>
    tt.return %sum : tensor<32xf32, #ttg.slice<{dim = 1, parent = #rows}>>
  }
}

// -----

// Warps: what is left moves once, through shared memory that Triton allocates, and the rest folds
// in registers.
// CHECK-LABEL: tt.func @warps
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: %[[BUFFER:.*]] = ttg.local_alloc %{{.*}} : (tensor<4xf32, #{{.*}}>) -> !ttg.memdesc<4xf32, #{{.*}}>
// CHECK-NEXT: ttg.local_load %[[BUFFER]] : !ttg.memdesc<4xf32, #{{.*}}> -> tensor<4xf32, #{{.*}}>
// CHECK-COUNT-3: llvm.nvvm.add.rn.f
// CHECK-NOT: llvm.nvvm.add.rn.f
#warps = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @warps(%x: tensor<128xf32, #warps>) -> f32 {
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<128xf32, #warps>) -> f32
    tt.return %sum : f32
  }
}

// -----

// Half exchanges: eight rows a warp, one lane a column. 4 + 2 + 1 + 1 + 1 shuffles where butterflies
// take 40; the conversion that follows the reduction is planned for and gone.
// CHECK-LABEL: tt.func @rows
// CHECK-COUNT-9: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: tt.return
#tile = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
#out = #ttg.linear<{register = [], lane = [[32], [16], [8], [0], [0]], warp = [[1], [2], [4]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @rows(%x: tensor<64x32xf32, #tile>) -> tensor<64xf32, #out> {
    %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x32xf32, #tile>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #tile}>>
    %moved = ttg.convert_layout %sum : tensor<64xf32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<64xf32, #out>
    tt.return %moved : tensor<64xf32, #out>
  }
}

// -----

// A combine that does not commute gets the lower lane's value on the left, in both lanes.
// CHECK-LABEL: tt.func @ordered
// CHECK: %[[OTHER:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[OWN:.*]], %{{.*}}, %{{.*}}
// CHECK-DAG: %[[LEFT:.*]] = llvm.select %[[BIT:.*]], %[[OTHER]], %[[OWN]]
// CHECK-DAG: %[[RIGHT:.*]] = llvm.select %{{.*}}, %[[OWN]], %[[OTHER]]
// CHECK: sub.rn.f32{{.*}} %[[LEFT]], %[[RIGHT]]
#pair = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @ordered(%x: tensor<2xf32, #pair>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<2xf32, #pair>) -> f32
    tt.return %r : f32
  }
}

// -----

// Any order of a maximum gives one result: Triton's own lowering may do as it likes.
// CHECK-LABEL: tt.func @insensitive
// CHECK: "tt.reduce"
// CHECK: arith.maxnumf
// CHECK-NOT: tt.order
#max = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @insensitive(%x: tensor<32xf32, #max>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #max>) -> f32
    tt.return %r : f32
  }
}
