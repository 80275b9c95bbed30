// A new layout flows from the operand through whatever accepts it.
// RUN: bitstable-opt %s --pass-pipeline=reduce-layout -split-input-file | FileCheck %s

// Masks and defaults follow; a constant that others use in the old layout is made twice.
// CHECK: #[[T0:.*]] = #ttg.blocked<{sizePerThread = [1, 4]
// CHECK: #[[T:.*]] = #ttg.blocked<{sizePerThread = [16, 4]
// CHECK-LABEL: @masked
// CHECK-DAG: %[[NEW:.*]] = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #[[T]]>
// CHECK-DAG: %[[OLD:.*]] = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #[[T0]]>
// CHECK: %[[LIVE:.*]] = tt.splat %{{.*}} : i1 -> tensor<64x128xi1, #[[T]]>
// CHECK: tt.load {{.*}}, %[[LIVE]], %[[NEW]] : tensor<64x128x!tt.ptr<f32>, #[[T]]>
// CHECK-NOT: ttg.convert_layout
// CHECK: ttg.local_alloc %[[OLD]]
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @masked(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %some: i1) {
    %zero = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #tile>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %live = tt.splat %some : i1 -> tensor<64x128xi1, #tile>
    %values = tt.load %from, %live, %zero : tensor<64x128x!tt.ptr<f32>, #tile>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    %kept = ttg.local_alloc %zero : (tensor<64x128xf32, #tile>) -> !ttg.memdesc<64x128xf32, #shared, #smem>
    tt.return
  }
}

// -----

// What a loop carries follows: into it, in it, around it and out of it.
// CHECK-LABEL: @carried
// CHECK: scf.for {{.*}} -> (tensor<64x128xf32, #[[T:[a-z0-9]*]]>)
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, #[[T]]>
// CHECK: scf.yield {{.*}} : tensor<64x128xf32, #[[T]]>
// CHECK: "tt.reduce"
// CHECK: tt.order = "inner_tree"} : (tensor<64x128xf32, #[[T]]>)
// CHECK-NOT: ttg.convert_layout
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @carried(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %steps: i32) {
    %zero = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #tile>
    %first = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %all = scf.for %i = %first to %steps step %one iter_args(%so_far = %zero) -> (tensor<64x128xf32, #tile>) : i32 {
      %step = tt.splat %i : i32 -> tensor<64x128xi32, #tile>
      %at = tt.addptr %from, %step : tensor<64x128x!tt.ptr<f32>, #tile>, tensor<64x128xi32, #tile>
      %values = tt.load %at : tensor<64x128x!tt.ptr<f32>, #tile>
      %more = arith.addf %so_far, %values : tensor<64x128xf32, #tile>
      scf.yield %more : tensor<64x128xf32, #tile>
    }
    %sum = "tt.reduce"(%all) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// Both sides of a branch follow.
// CHECK-LABEL: @chosen
// CHECK: scf.if {{.*}} -> (tensor<64x128xf32, #[[T:[a-z0-9]*]]>)
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, #[[T]]>
// CHECK: scf.yield {{.*}} : tensor<64x128xf32, #[[T]]>
// CHECK: scf.yield {{.*}} : tensor<64x128xf32, #[[T]]>
// CHECK: tt.order = "inner_tree"} : (tensor<64x128xf32, #[[T]]>)
// CHECK-NOT: ttg.convert_layout
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @chosen(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %some: i1) {
    %one = arith.constant dense<1.000000e+00> : tensor<64x128xf32, #tile>
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %either = scf.if %some -> (tensor<64x128xf32, #tile>) {
      %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
      scf.yield %values : tensor<64x128xf32, #tile>
    } else {
      scf.yield %one : tensor<64x128xf32, #tile>
    }
    %sum = "tt.reduce"(%either) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// The two regions of a while carry different values.
// CHECK-LABEL: @repeated
// CHECK: scf.while {{.*}} : (tensor<64x128xf32, #[[T:[a-z0-9]*]]>, i32) -> (tensor<64x128xf32, #[[T]]>, i32)
// CHECK: scf.condition{{.*}} : tensor<64x128xf32, #[[T]]>, i32
// CHECK: scf.yield {{.*}} : tensor<64x128xf32, #[[T]]>, i32
// CHECK: tt.order = "inner_tree"} : (tensor<64x128xf32, #[[T]]>)
// CHECK-NOT: ttg.convert_layout
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @repeated(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %steps: i32) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %first = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %all:2 = scf.while (%so_far = %values, %i = %first) : (tensor<64x128xf32, #tile>, i32) -> (tensor<64x128xf32, #tile>, i32) {
      %more = arith.cmpi slt, %i, %steps : i32
      scf.condition(%more) %so_far, %i : tensor<64x128xf32, #tile>, i32
    } do {
    ^bb0(%now: tensor<64x128xf32, #tile>, %i: i32):
      %twice = arith.addf %now, %now : tensor<64x128xf32, #tile>
      %next = arith.addi %i, %one : i32
      scf.yield %twice, %next : tensor<64x128xf32, #tile>, i32
    }
    %sum = "tt.reduce"(%all#0) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// A row that is subtracted from all rows follows as a slice, and so does the result of a reduction
// whose order does not matter.
// CHECK-LABEL: @centred
// CHECK: arith.maxnumf
// CHECK: (tensor<64x128xf32, #[[T:[a-z0-9]*]]>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #[[T]]}>>
// CHECK: tt.expand_dims {{.*}} : tensor<128xf32, #ttg.slice<{dim = 0, parent = #[[T]]}>> -> tensor<1x128xf32, #[[T]]>
// CHECK: tt.broadcast {{.*}} : tensor<1x128xf32, #[[T]]> -> tensor<64x128xf32, #[[T]]>
// CHECK: tt.order = "inner_tree"} : (tensor<64x128xf32, #[[T]]>)
// CHECK-NOT: ttg.convert_layout
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @centred(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %most = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %row = tt.expand_dims %most {axis = 0 : i32} : tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x128xf32, #tile>
    %rows = tt.broadcast %row : tensor<1x128xf32, #tile> -> tensor<64x128xf32, #tile>
    %centred = arith.subf %values, %rows : tensor<64x128xf32, #tile>
    %sum = "tt.reduce"(%centred) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// A transposition infers its layout from the one that changes.
// CHECK: #[[LINEAR:.*]] = #ttg.linear<{register = {{\[\[}}1, 0], [2, 0], [0, 1], [0, 2], [0, 4], [0, 8]], lane = {{\[\[}}4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], warp = {{\[\[}}0, 16], [0, 32]], block = []}>
// CHECK-LABEL: @turned
// CHECK: tt.trans {{.*}} -> tensor<128x64xf32, #[[LINEAR]]>
// CHECK: ttg.local_alloc {{.*}} : (tensor<128x64xf32, #[[LINEAR]]>)
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#other = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @turned(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %turned = tt.trans %values {order = array<i32: 1, 0>} : tensor<64x128xf32, #tile> -> tensor<128x64xf32, #other>
    %kept = ttg.local_alloc %turned : (tensor<128x64xf32, #other>) -> !ttg.memdesc<128x64xf32, #shared, #smem>
    %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64x128xf32, #tile>) -> tensor<128xf32, #ttg.slice<{dim = 0, parent = #tile}>>
    %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.store %to, %sum : tensor<128x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #tile}>>
    tt.return
  }
}

// -----

// So does a reshape, here against its direction: the sum of all elements takes the columns of the
// tile as they are in memory.
// CHECK-DAG: #[[FLAT:.*]] = #ttg.linear<{register = {{\[\[}}1], [2], [8], [16], [32], [64]], lane = {{\[\[}}4], [128], [256], [512], [1024]], warp = {{\[\[}}2048], [4096]], block = []}>
// CHECK-DAG: #[[WIDE:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 8], [0, 16], [0, 32], [0, 64]], lane = {{\[\[}}0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = {{\[\[}}16, 0], [32, 0]], block = []}>
// CHECK-LABEL: @flat
// CHECK: tt.load {{.*}} : tensor<64x128x!tt.ptr<f32>, #[[WIDE]]>
// CHECK: tt.reshape {{.*}} : tensor<64x128xf32, #[[WIDE]]> -> tensor<8192xf32, #[[FLAT]]>
// CHECK: tt.order = "inner_tree"} : (tensor<8192xf32, #[[FLAT]]>) -> f32
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#flat = #ttg.linear<{register = [[1], [2], [512], [1024], [2048], [4096]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @flat(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %from = tt.splat %x : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #tile>
    %values = tt.load %from : tensor<64x128x!tt.ptr<f32>, #tile>
    %flat = tt.reshape %values : tensor<64x128xf32, #tile> -> tensor<8192xf32, #flat>
    %sum = "tt.reduce"(%flat) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<8192xf32, #flat>) -> f32
    tt.store %out, %sum : !tt.ptr<f32>
    tt.return
  }
}
