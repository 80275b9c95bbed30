// A row of 1024 products over 4 waves of 64: row_shr counts up within rows of 16 lanes, then one
// trip through LDS. No product is taken into an addition although Triton compiles with fusion on.
// RUN: %emit %s --target hip:gfx942 | FileCheck %s

// CHECK-LABEL: row_dot:
// CHECK-NOT: {{v_fma|v_fmac|v_pk_fma|v_mad}}
// CHECK: v_add_f32_dpp {{.*}} row_shr:1
// CHECK: v_add_f32_dpp {{.*}} row_shr:2
// CHECK: v_add_f32_dpp {{.*}} row_shr:4
// CHECK: v_add_f32_dpp {{.*}} row_shr:8
// CHECK: ds_write_b32
// CHECK: s_barrier
// CHECK: ds_read_b{{64|128}}
// CHECK-NOT: {{v_fma|v_fmac|v_pk_fma|v_mad}}
// CHECK: s_endpgm
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 64], warpsPerCTA = [1, 4], order = [1, 0]}>
#flat = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @row_dot(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #ttg.slice<{dim = 0, parent = #tile}>>
    %at = tt.expand_dims %range {axis = 0 : i32} : tensor<1024xi32, #ttg.slice<{dim = 0, parent = #tile}>> -> tensor<1x1024xi32, #tile>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1x1024x!tt.ptr<f32>, #tile>
    %xp = tt.addptr %xs, %at : tensor<1x1024x!tt.ptr<f32>, #tile>, tensor<1x1024xi32, #tile>
    %xv = tt.load %xp : tensor<1x1024x!tt.ptr<f32>, #tile>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1x1024x!tt.ptr<f32>, #tile>
    %yp = tt.addptr %ys, %at : tensor<1x1024x!tt.ptr<f32>, #tile>, tensor<1x1024xi32, #tile>
    %yv = tt.load %yp : tensor<1x1024x!tt.ptr<f32>, #tile>
    %product = arith.mulf %xv, %yv : tensor<1x1024xf32, #tile>
    %sum = "tt.reduce"(%product) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<1x1024xf32, #tile>) -> tensor<1xf32, #ttg.slice<{dim = 1, parent = #tile}>>
    %moved = ttg.convert_layout %sum : tensor<1xf32, #ttg.slice<{dim = 1, parent = #tile}>> -> tensor<1xf32, #flat>
    %outs = tt.splat %out : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>, #flat>
    tt.store %outs, %moved : tensor<1x!tt.ptr<f32>, #flat>
    tt.return
  }
}
