// Where an operation wants the layout that it has, the change ends at a conversion, whose price
// counts, or is not made.
// RUN: bitstable-opt %s --pass-pipeline='reduce-layout{strategy=renumber}' --remarks -split-input-file 2>&1 >%t | FileCheck %s --check-prefix=SAID
// RUN: FileCheck %s < %t

// A scan keeps its layout; so does what it scans, the row, which is small.
// SAID: operands renumbered
// CHECK-LABEL: @scanned
// CHECK: %[[SUM:.*]] = "tt.reduce"
// CHECK: %[[OLD:.*]] = ttg.convert_layout %[[SUM]]
// CHECK: "tt.scan"(%[[OLD]])
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @scanned(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %running = "tt.scan"(%sum) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %running : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// A reduction whose order is free keeps its layout, and with it its bits: converting the tile for it
// costs more than is saved.
// SAID: the operands keep their layout: the cheapest other costs {{[0-9]+}}, {{[0-9]+}} of it for conversions, this one {{[0-9]+}}
// SAID: note: tt.reduce at borders.mlir:{{[0-9]+}}:{{[0-9]+}} wants the layout that it has
// CHECK-LABEL: @free
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, #blocked>
// CHECK-NOT: ttg.convert_layout
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @free(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %free = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %both = arith.addf %sum, %free : tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %both : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// What comes out of a table in memory that lanes read in order would come from other banks.
// SAID: the operands keep their layout: ttg.local_load at borders.mlir:{{[0-9]+}}:{{[0-9]+}} would access more of memory in another
// CHECK-LABEL: @banks
// CHECK-NOT: ttg.convert_layout
#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @banks(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %table = ttg.local_alloc : () -> !ttg.memdesc<1024xf32, #shared, #smem, mutable>
    %values = ttg.local_load %table : !ttg.memdesc<1024xf32, #shared, #smem, mutable> -> tensor<1024xf32, #row>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<1024xf32, #row>) -> f32
    tt.store %out, %sum : !tt.ptr<f32>
    tt.return
  }
}
