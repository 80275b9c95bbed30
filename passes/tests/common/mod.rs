//! Small modules in generic form, made from parts.

/// A layout of 4x256 elements over 4 warps of 32 lanes.
pub const BLOCKED: &str = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], \
                           warpsPerCTA = [4, 1], order = [1, 0]}>";

/// A module with one reduction; every part can be replaced.
pub struct Module {
    /// What makes `%x`, of type [`Module::operand`].
    pub source: String,
    /// The type of `%x`.
    pub operand: String,
    /// The type of the result.
    pub result: String,
    /// The element type.
    pub element: String,
    /// The combine function's operations but the last; they make `%s` of `%a` and `%b`.
    pub combine: String,
    /// What ends the combine function.
    pub end: String,
    /// The reduction's discardable attributes.
    pub attributes: String,
    /// What uses `%r`.
    pub sink: String,
    /// The module's attributes.
    pub module: String,
}

impl Default for Module {
    fn default() -> Module {
        let operand = format!("tensor<4x256xf32, {BLOCKED}>");
        let result = format!("tensor<4xf32, #ttg.slice<{{dim = 1, parent = {BLOCKED}}}>>");
        Module {
            source: format!("%x = \"test.source\"() : () -> {operand}"),
            element: "f32".into(),
            combine: "%s = \"arith.addf\"(%a, %b) : (f32, f32) -> f32".into(),
            end: "\"tt.reduce.return\"(%s) : (f32) -> ()".into(),
            attributes: "tt.order = \"inner_tree\"".into(),
            sink: format!("\"test.sink\"(%r) : ({result}) -> ()"),
            module: machine("cuda:90", 32, 4, 1),
            operand,
            result,
        }
    }
}

/// The module's attributes for a GPU.
pub fn machine(target: &str, lanes: u32, warps: u32, ctas: u32) -> String {
    format!(
        "\"ttg.num-ctas\" = {ctas} : i32, \"ttg.num-warps\" = {warps} : i32, \
         ttg.target = \"{target}\", \"ttg.threads-per-warp\" = {lanes} : i32"
    )
}

impl Module {
    /// The module's text. The reduction is at `kernel.py:7:11`, called through Triton's library.
    pub fn text(&self) -> String {
        let Module { source, operand, result, element, combine, end, attributes, sink, module } =
            self;
        format!(
            r#""builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k"}}> ({{
    {source}
    %r = "tt.reduce"(%x) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: {element}, %b: {element}):
      {combine}
      {end}
    }}) {{{attributes}}} : ({operand}) -> {result} loc(callsite("triton/language/standard.py":3:1 at "kernel.py":7:11))
    {sink}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{{module}}} : () -> ()
"#
        )
    }

    /// The module with all its f32 elements of another type.
    pub fn of(element: &str) -> Module {
        let swap = |text: String| text.replace("f32", element);
        let module = Module::default();
        Module {
            source: swap(module.source),
            operand: swap(module.operand),
            result: swap(module.result),
            element: swap(module.element),
            combine: swap(module.combine),
            end: swap(module.end),
            sink: swap(module.sink),
            ..module
        }
    }
}
