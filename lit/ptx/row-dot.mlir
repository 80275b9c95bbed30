// A row of 512 products over 4 warps: count-up shuffles, one trip through shared memory, and no
// product taken into an addition although Triton compiles with fusion on.
// RUN: %emit %s --target cuda:80 | FileCheck %s
// RUN: %emit %s --target cuda:90 | FileCheck %s
// RUN: %emit %s --target cuda:100 | FileCheck %s

// CHECK-LABEL: .entry row_dot
// CHECK-NOT: fma
// CHECK: mul.{{(rn.)?}}f32
// CHECK: add.rn.f32
// CHECK: shfl.sync.bfly.b32 {{.*}}, 1, 31, -1
// CHECK: shfl.sync.bfly.b32 {{.*}}, 2, 31, -1
// CHECK: shfl.sync.bfly.b32 {{.*}}, 4, 31, -1
// CHECK: shfl.sync.bfly.b32 {{.*}}, 8, 31, -1
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1
// CHECK: st.shared
// CHECK: bar.sync
// CHECK: ld.shared.v4
// CHECK-COUNT-3: add.rn.f32
// CHECK-NOT: add
// CHECK-NOT: fma
// CHECK: ret;
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#flat = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @row_dot(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %range = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %at = tt.expand_dims %range {axis = 0 : i32} : tensor<512xi32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x512xi32, #tile>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1x512x!tt.ptr<f32>, #tile>
    %xp = tt.addptr %xs, %at : tensor<1x512x!tt.ptr<f32>, #tile>, tensor<1x512xi32, #tile>
    %xv = tt.load %xp : tensor<1x512x!tt.ptr<f32>, #tile>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1x512x!tt.ptr<f32>, #tile>
    %yp = tt.addptr %ys, %at : tensor<1x512x!tt.ptr<f32>, #tile>, tensor<1x512xi32, #tile>
    %yv = tt.load %yp : tensor<1x512x!tt.ptr<f32>, #tile>
    %product = arith.mulf %xv, %yv : tensor<1x512xf32, #tile>
    %sum = "tt.reduce"(%product) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<1x512xf32, #tile>) -> tensor<1xf32, #ttg.slice<{dim = 1, parent = #tile}>>
    %moved = ttg.convert_layout %sum : tensor<1xf32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<1xf32, #flat>
    %outs = tt.splat %out : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>, #flat>
    tt.store %outs, %moved : tensor<1x!tt.ptr<f32>, #flat>
    tt.return
  }
}
