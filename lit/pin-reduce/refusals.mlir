// Refusals: each names what, where, and what to do. The exit status is not 0 and nothing is printed.
// RUN: not bitstable-opt %s --pass-pipeline=pin-reduce -split-input-file 2>&1 | FileCheck %s

// What it is asked for is not an order.
// CHECK: error: tt.order is "outer_tree" on tt.reduce
// CHECK: {{.*}}the choices are: "inner_tree"
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @order(%x: tensor<32xf32, #b>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "outer_tree"} : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// An order that is no string is no order either.
// CHECK: error: tt.order is {{.*}} on tt.reduce
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @order_type(%x: tensor<32xf32, #b>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = 1 : i32} : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// Nothing but tt.reduce has an order.
// CHECK: error: tt.order on tt.splat: only tt.reduce has an order
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @elsewhere(%x: f32) -> tensor<32xf32, #b> {
    %r = tt.splat %x {tt.order = "inner_tree"} : f32 -> tensor<32xf32, #b>
    tt.return %r : tensor<32xf32, #b>
  }
}

// -----

// A remainder has no form that every target rounds alike.
// CHECK: error: the combine function of a pinned reduction holds arith.remf
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @remainder(%x: tensor<32xf32, #b>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.remf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// An assembly with side effects is no function of its operands.
// CHECK: error: the combine function of a pinned reduction holds tt.elementwise_inline_asm
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @assembly(%x: tensor<32xf32, #b>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = tt.elementwise_inline_asm "add.f32 $0, $1, $2;" {constraints = "=r,r,r", packed_element = 1 : i32, pure = false} %a, %b : f32, f32 -> f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// Relaxed arithmetic is not rounded as IEEE says.
// CHECK: error: the combine function of a pinned reduction holds arith.addf
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @fastmath(%x: tensor<32xf32, #b>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b fastmath<contract> : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// gfx942 has no bf16 fma that rounds once.
// CHECK: error: the combine function of a pinned reduction holds math.fma
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func @bf16_fma(%x: tensor<64xbf16, #b>) -> bf16 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: bf16, %b: bf16):
      %c = math.fma %a, %b, %b : bf16
      tt.reduce.return %c : bf16
    }) {tt.order = "inner_tree"} : (tensor<64xbf16, #b>) -> bf16
    tt.return %r : bf16
  }
}

// -----

// Elements of eight bits.
// CHECK: error: a pinned tt.reduce over elements of type f8E4M3FN is not supported
// CHECK: {{.*}}convert the operand first
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @fp8(%x: tensor<32xf8E4M3FN, #b>) -> f8E4M3FN {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN):
      %c = arith.addf %a, %b : f8E4M3FN
      tt.reduce.return %c : f8E4M3FN
    }) {tt.order = "inner_tree"} : (tensor<32xf8E4M3FN, #b>) -> f8E4M3FN
    tt.return %r : f8E4M3FN
  }
}

// -----

// A reshape that may reorder gives the elements the order of its layout.
// CHECK: error: a pinned reduction reads elements in the order of tt.reshape
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#t = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reordered(%x: tensor<4x8xf32, #t>) -> f32 {
    %flat = tt.reshape %x allow_reorder : tensor<4x8xf32, #t> -> tensor<32xf32, #b>
    %double = arith.addf %flat, %flat : tensor<32xf32, #b>
    %r = "tt.reduce"(%double) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// A shield whose reduction lost its order is a reduction that would fold in any order.
// CHECK: error: a reduction pinned to inner_tree was turned into tt.reduce and lost its order
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @lost(%x: tensor<32xf32, #b>) -> f32 {
    %s = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "bitstable.pin"} : (tensor<32xf32, #b>) -> tensor<32xf32, #b>
    %r = "tt.reduce"(%s) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32xf32, #b>) -> f32
    tt.return %r : f32
  }
}

// -----

// The axis is split over a cluster.
// CHECK: error: tt.reduce pinned to inner_tree, axis 0: the reduced axis is split over the CTAs of a cluster
// CHECK: {{.*}}use num_ctas=1
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0], CGALayout = [[1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @cluster(%x: tensor<64xf32, #b>) -> f32 {
    %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {tt.order = "inner_tree"} : (tensor<64xf32, #b>) -> f32
    tt.return %r : f32
  }
}
