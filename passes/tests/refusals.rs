//! Every refusal: what it says, where, and what to do. Each stands beside a module that passes.

mod common;

use bitstable_passes::{
    refusal::{Failure, Refusal, Refused},
    report::Diagnostics,
    rewrite,
};
use common::{BLOCKED, Module, machine};

fn refused(module: &Module) -> Vec<Refused> {
    match rewrite(&module.text(), "pin-reduce") {
        Err(Failure::Refused(all)) => {
            assert!(!all.is_empty());
            all
        }
        other => panic!("expected a refusal, got {other:?}\n{}", module.text()),
    }
}

/// The message of the one refusal.
fn message(module: &Module) -> String {
    let all = refused(module);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].refusal.to_string()
}

fn accepted(module: &Module) {
    let rewritten = rewrite(&module.text(), "pin-reduce");
    assert!(rewritten.is_ok(), "{rewritten:?}\n{}", module.text());
}

fn default() -> Module {
    Module::default()
}

#[test]
fn the_module_that_the_others_vary_passes() {
    accepted(&default());
}

#[test]
fn place_help_and_shape_of_the_json() {
    let failure = rewrite(
        &Module { attributes: "tt.order = \"x\"".into(), ..default() }.text(),
        "pin-reduce",
    );
    let diagnostics = Diagnostics::from(&failure.unwrap_err());
    let json = serde_json::to_value(&diagnostics).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"diagnostics": [{
            "severity": "error",
            "message": "tt.order is \"x\" on tt.reduce",
            "file": "kernel.py", "line": 7, "col": 11,
            "notes": [],
            "help": "the choices are: \"inner_tree\"",
        }]})
    );
}

#[test]
fn orders_that_are_none() {
    for order in ["\"outer_tree\"", "1 : i32", "unit", "[\"inner_tree\"]"] {
        let module = Module { attributes: format!("tt.order = {order}"), ..default() };
        assert!(message(&module).contains(order), "{order}");
    }
}

#[test]
fn an_order_among_the_properties() {
    let text =
        default().text().replace("axis = 1 : i32", "axis = 1 : i32, tt.order = \"inner_tree\"");
    let text = text.replace("{tt.order = \"inner_tree\"}", "{}");
    let Err(Failure::Refused(all)) = rewrite(&text, "pin-reduce") else { panic!("{text}") };
    assert!(matches!(all[0].refusal, Refusal::Malformed { .. }));
}

#[test]
fn an_order_elsewhere() {
    let source = default().source.replace("() : () ->", "() {tt.order = \"inner_tree\"} : () ->");
    assert!(message(&Module { source, ..default() }).contains("tt.order on test.source"));
    let text = default().text().replace("\"tt.reduce\"", "\"tt.scan\"");
    let Err(Failure::Refused(all)) = rewrite(&text, "pin-reduce") else { panic!("{text}") };
    assert_eq!(all[0].refusal, Refusal::OrderElsewhere { op: "tt.scan".into() });
}

fn shielded(user: &str) -> Module {
    let ty = default().operand;
    let shield = format!(
        "%y = \"test.source\"() : () -> {ty}\n%x = \"tt.extern_elementwise\"(%y) <{{libname = \"\", \
         libpath = \"\", pure = true, symbol = \"bitstable.pin\"}}> : ({ty}) -> {ty}\n{user}"
    );
    Module { source: shield, ..default() }
}

#[test]
fn a_pin_that_was_lost() {
    accepted(&shielded(""));
    let ty = default().operand;
    let user = format!("%z = \"tt.dot\"(%x, %x, %x) : ({ty}, {ty}, {ty}) -> {ty}");
    assert!(message(&shielded(&user)).contains("was turned into tt.dot and lost its order"));
    let unpinned = Module { attributes: String::new(), ..shielded("") };
    assert!(message(&unpinned).contains("was turned into tt.reduce"));
}

#[test]
fn combine_operations() {
    let with = |operation: &str| Module {
        combine: format!("{operation}\n%s = \"arith.subf\"(%a, %b) : (f32, f32) -> f32"),
        ..default()
    };
    for (operation, name) in [
        ("%t = \"tt.call\"(%a) <{callee = @f}> : (f32) -> f32", "tt.call"),
        ("\"tt.assert\"(%a) : (f32) -> ()", "tt.assert"),
        ("\"tt.print\"(%a) : (f32) -> ()", "tt.print"),
        ("%t = \"tt.load\"(%a) : (f32) -> f32", "tt.load"),
        ("\"tt.store\"(%a, %b) : (f32, f32) -> ()", "tt.store"),
        ("%t = \"tt.atomic_rmw\"(%a, %b) : (f32, f32) -> f32", "tt.atomic_rmw"),
        ("%t = \"ttg.local_load\"(%a) : (f32) -> f32", "ttg.local_load"),
        (
            "%t = \"tt.elementwise_inline_asm\"(%a) <{pure = false}> : (f32) -> f32",
            "tt.elementwise_inline_asm",
        ),
        ("%t = \"tt.extern_elementwise\"(%a) : (f32) -> f32", "tt.extern_elementwise"),
    ] {
        let message = message(&with(operation));
        assert!(message.contains(&format!("holds {name}:")), "{message}");
    }
    accepted(&with("%t = \"arith.mulf\"(%a, %b) : (f32, f32) -> f32"));
}

#[test]
fn a_tensor_from_outside_the_combine_function() {
    let ty = default().operand;
    let combine = format!(
        "%t = \"tt.unsplat\"(%x) : ({ty}) -> f32\n%s = \"arith.subf\"(%a, %t) : (f32, f32) -> f32"
    );
    let all = refused(&Module { combine, ..default() });
    assert!(all[0].refusal.to_string().contains("a tensor from outside"), "{all:?}");
}

#[test]
fn combine_functions_of_another_shape() {
    let end = "\"tt.return\"() : () -> ()".to_owned();
    assert!(message(&Module { end, ..default() }).contains("does not end in tt.reduce.return"));
    let end = "\"cf.br\"()[^bb1] : () -> ()\n^bb1:\n\"tt.reduce.return\"(%s) : (f32) -> ()".into();
    assert!(message(&Module { end, ..default() }).contains("has branches"));
    let element = "f32, %c: f32, %d".to_owned();
    let text = Module { element, ..default() }.text().replace("%b: f32, %c: f32, %d", "%b");
    let Err(Failure::Refused(all)) = rewrite(&text, "pin-reduce") else { panic!("{text}") };
    assert!(matches!(all[0].refusal, Refusal::CombineShape { .. } | Refusal::Parse { .. }));
}

#[test]
fn element_types() {
    for element in ["f64", "f16", "bf16"] {
        accepted(&Module::of(element));
    }
    let subtract = |ty: &str| Module {
        combine: format!("%s = \"arith.subi\"(%a, %b) : ({ty}, {ty}) -> {ty}"),
        ..Module::of(ty)
    };
    for element in ["i8", "i16", "i32", "i64"] {
        accepted(&subtract(element));
    }
    for element in ["f8E4M3FN", "f8E5M2", "!tt.ptr<i8>", "i128"] {
        let module = subtract(element);
        let message = message(&module);
        assert!(message.contains(&format!("type {element} ")), "{message}");
    }
}

#[test]
fn layouts() {
    let with = |old: &str, new: &str| {
        let text = default().text().replace(old, new);
        match rewrite(&text, "pin-reduce") {
            Err(Failure::Refused(all)) => all[0].refusal.clone(),
            other => panic!("{other:?}\n{text}"),
        }
    };
    let other_warps = with("warpsPerCTA = [4, 1]", "warpsPerCTA = [2, 1]");
    assert!(matches!(other_warps, Refusal::LayoutSize { what: "warps", .. }), "{other_warps}");
    let other_lanes = with("threadsPerWarp = [1, 32]", "threadsPerWarp = [1, 64]");
    assert!(matches!(other_lanes, Refusal::LayoutSize { what: "lanes", .. }), "{other_lanes}");
    let none = with(&format!("(tensor<4x256xf32, {BLOCKED}>)"), "(tensor<4x256xf32>)");
    assert!(matches!(none, Refusal::Parse { .. }), "{none}");
    let plain = default().text().replace(&format!("4x256xf32, {BLOCKED}"), "4x256xf32");
    let Err(Failure::Refused(all)) = rewrite(&plain, "pin-reduce") else { panic!("{plain}") };
    assert!(all[0].refusal.to_string().contains("has no layout"), "{all:?}");
    let odd = with("4x256xf32", "4x255xf32");
    assert!(odd.to_string().contains("powers of two"), "{odd}");
}

#[test]
fn a_layout_that_is_not_understood_is_converted() {
    let text = default().text().replace(BLOCKED, "#ttg.unheard_of<{a = 1}>");
    let rewritten = rewrite(&text, "pin-reduce").unwrap();
    assert!(rewritten.text.contains("\"ttg.convert_layout\""), "{}", rewritten.text);
}

#[test]
fn an_axis_across_ctas() {
    let layout = "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], \
                  [0, 32]], warp = [[0, 64], [1, 0]], block = [[BLOCK]]}>";
    let module = |block: &str| {
        let text = default().text().replace(BLOCKED, &layout.replace("BLOCK", block));
        text.replace(&default().module, &machine("cuda:90", 32, 4, 2))
    };
    let Err(Failure::Refused(all)) = rewrite(&module("0, 128"), "pin-reduce") else { panic!() };
    assert!(all[0].refusal.to_string().contains("split over the CTAs"), "{all:?}");
    let by_row = module("2, 0").replace("4x256", "4x128");
    assert!(rewrite(&by_row, "pin-reduce").is_ok(), "{by_row}");
}

#[test]
fn machines() {
    let on = |machine: &str| message(&Module { module: machine.into(), ..default() });
    assert_eq!(on("a.b"), "the module has no attribute \"ttg.threads-per-warp\"");
    assert!(on(&machine("cuda:x", 32, 4, 1)).contains("is \"cuda:x\""));
    assert!(on(&machine("metal:3", 32, 4, 1)).contains("is \"metal:3\""));
    assert!(on(&machine("cuda:90", 64, 4, 1)).contains("expected 32 on NVIDIA"));
    assert!(on(&machine("hip:gfx942", 16, 4, 1)).contains("expected 32 or 64 on AMD"));
    assert!(on(&machine("cuda:90", 32, 3, 1)).contains("expected a power of two"));
    assert!(on(&machine("cuda:61", 32, 4, 1)).contains("not supported on cuda:61"));
}

#[test]
fn elements_in_the_order_of_a_layout() {
    let ty = default().operand;
    let through = |op: &str| Module {
        source: format!(
            "%y = \"test.source\"() : () -> {ty}\n%z = {op} : ({ty}) -> {ty}\n\
             %x = \"arith.negf\"(%z) : ({ty}) -> {ty}"
        ),
        ..default()
    };
    let reshape = "\"tt.reshape\"(%y) <{allow_reorder}>";
    assert!(message(&through(reshape)).contains("in the order of tt.reshape"));
    assert!(message(&through("\"tt.cat\"(%y)")).contains("in the order of tt.cat"));
    accepted(&through("\"tt.reshape\"(%y)"));
    let looped = Module {
        source: format!(
            "%y = \"test.source\"() : () -> {ty}\n%z = {reshape} : ({ty}) -> {ty}\n\
             %i = \"test.bound\"() : () -> i32\n\
             %x, %w = \"scf.for\"(%i, %i, %i, %y, %z) ({{\n^bb0(%n: i32, %p: {ty}, %q: {ty}):\n\
             \"scf.yield\"(%p, %q) : ({ty}, {ty}) -> ()\n}}) : (i32, i32, i32, {ty}, {ty}) -> ({ty}, {ty})"
        ),
        ..default()
    };
    accepted(&looped);
    let crossed = Module { source: looped.source.replace("(%p, %q)", "(%q, %p)"), ..default() };
    assert!(message(&crossed).contains("in the order of tt.reshape"));
}

#[test]
fn all_refusals_of_a_module_are_told() {
    let combine = "\"tt.print\"(%a) : (f32) -> ()\n\"tt.assert\"(%a) : (f32) -> ()\n\
                   %s = \"arith.subf\"(%a, %b) : (f32, f32) -> f32";
    assert_eq!(refused(&Module { combine: combine.into(), ..default() }).len(), 2);
}

#[test]
fn texts_that_are_no_modules() {
    let parse = |text: &str| match rewrite(text, "pin-reduce") {
        Err(Failure::Refused(all)) => all[0].refusal.clone(),
        other => panic!("{other:?}"),
    };
    assert!(parse("garbage").to_string().contains("line 1, column 1"));
    assert!(matches!(parse("\0"), Refusal::Parse { .. }));
    assert!(matches!(parse("module attributes {"), Refusal::Parse { .. }));
    assert!(matches!(parse("#blocked = #ttg.blocked<{}>\nmodule {}\n)"), Refusal::Parse { .. }));
    assert!(matches!(parse(&"\"a\"() ({".repeat(5000)), Refusal::TooDeep { .. }));
    let text = default().text();
    for end in (0..text.len()).step_by(41) {
        let part = &text[..end];
        if !part.trim().is_empty() {
            assert!(matches!(parse(part), Refusal::Parse { .. }), "{part}");
        }
    }
}
