// Pinned reductions read their operands in a layout that folds cheaply; the bits cannot move.
// RUN: bitstable-opt %s --pass-pipeline=reduce-layout -split-input-file | FileCheck %s

// A column sum: a thread takes 16 neighbouring rows instead of 16 distant ones, and the loads, the
// addresses and the slices of the layout go along. Vectors along the row stay as they are.
// CHECK-DAG: #[[TILE:.*]] = #ttg.blocked<{sizePerThread = [16, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NOT: sizePerThread = [1, 4]
// CHECK-LABEL: @column_sum
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, #[[TILE]]>
// CHECK: tt.order = "inner_tree"
// CHECK-NOT: ttg.convert_layout
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @column_sum(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #tile}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<64x1xi32, #tile>
    %width = arith.constant dense<128> : tensor<64x1xi32, #tile>
    %start = arith.muli %row, %width : tensor<64x1xi32, #tile>
    %columns = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x128xi32, #tile>
    %starts = tt.broadcast %start : tensor<64x1xi32, #tile> -> tensor<64x128xi32, #tile>
    %offsets = tt.broadcast %column : tensor<1x128xi32, #tile> -> tensor<64x128xi32, #tile>
    %at = arith.addi %starts, %offsets : tensor<64x128xi32, #tile>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %pointers = tt.addptr %base, %at : tensor<64x128x!tt.ptr<f32>, #tile>, tensor<64x128xi32, #tile>
    %values = tt.load %pointers : tensor<64x128x!tt.ptr<f32>, #tile>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    %place = tt.addptr %to, %columns : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>, tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %place, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// A row: two lanes share a sector of 32 bytes, then come the registers, then the other lanes.
// CHECK: #[[ROW:.*]] = #ttg.linear<{register = {{\[\[}}1], [2], [8], [16], [32], [64]], lane = {{\[\[}}4], [128], [256], [512], [1024]], warp = {{\[\[}}2048], [4096]], block = []}>
// CHECK-LABEL: @row_sum
// CHECK: tt.load {{.*}} : tensor<8192x!tt.ptr<f32>, #[[ROW]]>
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @row_sum(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %columns = tt.make_range {end = 8192 : i32, start = 0 : i32} : tensor<8192xi32, #row>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>, #row>
    %pointers = tt.addptr %base, %columns : tensor<8192x!tt.ptr<f32>, #row>, tensor<8192xi32, #row>
    %values = tt.load %pointers : tensor<8192x!tt.ptr<f32>, #row>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<8192xf32, #row>) -> f32
    tt.store %out, %sum : !tt.ptr<f32>
    tt.return
  }
}

// -----

// A reduction whose order is free keeps its layout: it was Triton's choice.
// CHECK: sizePerThread = [1, 4]
// CHECK-LABEL: @unordered
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @unordered(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #tile}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<64x1xi32, #tile>
    %width = arith.constant dense<128> : tensor<64x1xi32, #tile>
    %start = arith.muli %row, %width : tensor<64x1xi32, #tile>
    %columns = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x128xi32, #tile>
    %starts = tt.broadcast %start : tensor<64x1xi32, #tile> -> tensor<64x128xi32, #tile>
    %offsets = tt.broadcast %column : tensor<1x128xi32, #tile> -> tensor<64x128xi32, #tile>
    %at = arith.addi %starts, %offsets : tensor<64x128xi32, #tile>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %pointers = tt.addptr %base, %at : tensor<64x128x!tt.ptr<f32>, #tile>, tensor<64x128xi32, #tile>
    %values = tt.load %pointers : tensor<64x128x!tt.ptr<f32>, #tile>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    %place = tt.addptr %to, %columns : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>, tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %place, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// Nor does pinning one reduction move the bits of another over the same layout.
// CHECK: sizePerThread = [1, 4]
// CHECK-LABEL: @neighbour
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @neighbour(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #tile}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<64x1xi32, #tile>
    %width = arith.constant dense<128> : tensor<64x1xi32, #tile>
    %start = arith.muli %row, %width : tensor<64x1xi32, #tile>
    %columns = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x128xi32, #tile>
    %starts = tt.broadcast %start : tensor<64x1xi32, #tile> -> tensor<64x128xi32, #tile>
    %offsets = tt.broadcast %column : tensor<1x128xi32, #tile> -> tensor<64x128xi32, #tile>
    %at = arith.addi %starts, %offsets : tensor<64x128xi32, #tile>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %pointers = tt.addptr %base, %at : tensor<64x128x!tt.ptr<f32>, #tile>, tensor<64x128xi32, #tile>
    %values = tt.load %pointers : tensor<64x128x!tt.ptr<f32>, #tile>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %pinned = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    %place = tt.addptr %to, %columns : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>, tensor<128xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %both = arith.addf %sum, %pinned : tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %place, %both : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}
