// Waves of 32 have no row broadcasts: row_xmask counts up, then the other row.
// RUN: %emit %s --target hip:gfx1201 | FileCheck %s

// CHECK-LABEL: row_dot:
// CHECK-NOT: {{v_fma|v_fmac|v_pk_fma|v_dual_fmac}}
// CHECK: row_xmask:1
// CHECK: row_xmask:2
// CHECK: row_xmask:4
// CHECK: row_xmask:8
// CHECK: v_permlanex16_b32
// CHECK-NOT: {{v_fma|v_fmac|v_pk_fma|v_dual_fmac}}
// CHECK: s_endpgm
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#flat = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1201", "ttg.threads-per-warp" = 32 : i32} {
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
