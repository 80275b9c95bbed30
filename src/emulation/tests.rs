//! The executor's boundary as a C caller sees it.

use std::{
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::*;
use crate::bitstable_free;

const TWICE: &str = "
.version 8.7
.target sm_90
.address_size 64
.file 1 \"/somewhere/kernel.py\"
.visible .entry twice(
    .param .u64 .ptr .global .align 1 twice_param_0,
    .param .u32 twice_param_1
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.b64 %rd1, [twice_param_0];
    ld.param.b32 %r1, [twice_param_1];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    .loc 1 7 13
    ld.global.b32 %r3, [%rd3];
    mul.lo.s32 %r4, %r3, %r1;
    st.global.b32 [%rd3], %r4;
    ret;
}
";

const FOREVER: &str = "
.version 8.7
.target sm_90
.address_size 64
.visible .entry forever()
{
$loop:
    bra.uni $loop;
}
";

fn reply(call: impl FnOnce(*mut Reply)) -> (u32, Value) {
    let mut reply = MaybeUninit::<Reply>::uninit();
    call(reply.as_mut_ptr());
    // SAFETY: every call fills the reply; what it holds is copied before it is freed.
    unsafe {
        let mut reply = reply.assume_init();
        let read = |data, len| text(data, len).expect("a reply is UTF-8").to_owned();
        let told = match read(reply.text, reply.text_len) {
            said if said.is_empty() => read(reply.report, reply.report_len),
            said => said,
        };
        let status = reply.status;
        bitstable_free(&mut reply);
        (status, serde_json::from_str(&told).expect("a reply is JSON"))
    }
}

fn load_text(ptx: &str, options: &Value) -> (u32, Value) {
    let options = options.to_string();
    let (p, o) = (ptx.as_ptr().cast(), options.as_ptr().cast());
    // SAFETY: the buffers are what their lengths say.
    reply(|out| unsafe { bitstable_ptx_load(p, ptx.len(), o, options.len(), out) })
}

fn handle(ptx: &str) -> u64 {
    let (status, told) = load_text(ptx, &json!({}));
    assert_eq!(status, 0, "{told}");
    told["handle"].as_u64().expect("a handle is a number")
}

fn launch_of(handle: u64, request: &Value, params: &[u8], cancel: &AtomicBool) -> (u32, Value) {
    let request = request.to_string();
    let (r, p) = (request.as_ptr().cast(), params.as_ptr());
    let flag = std::ptr::from_ref(cancel).cast();
    // SAFETY: the buffers are what their lengths say, those of the request are the tests' own.
    reply(|out| unsafe {
        bitstable_ptx_launch(handle, r, request.len(), p, params.len(), flag, out);
    })
}

fn twice(data: &mut [u32], threads: u32, options: &Value) -> (u32, Value) {
    let kernel = handle(TWICE);
    let address = data.as_mut_ptr() as u64;
    let mut params = address.to_le_bytes().to_vec();
    params.extend(2_u32.to_le_bytes());
    let request = json!({
        "grid": [1, 1, 1], "block": [threads, 1, 1], "options": options,
        "buffers": [
            {"name": "x", "address": address, "bytes": size_of_val(data), "writable": true}
        ],
    });
    let answer = launch_of(kernel, &request, &params, &AtomicBool::new(false));
    bitstable_ptx_unload(kernel);
    answer
}

fn message(told: &Value) -> &str {
    told["diagnostics"][0]["message"].as_str().expect("a refusal has a message")
}

#[test]
fn loading_tells_the_parameters() {
    let (status, told) = load_text(TWICE, &json!({"entry": "twice"}));
    assert_eq!(status, 0, "{told}");
    assert_eq!(told["param_bytes"], 12);
    assert_eq!(told["params"][1], json!({"name": "twice_param_1", "offset": 8, "bytes": 4}));
}

#[test]
fn what_does_not_load_is_refused_with_its_place() {
    let (status, told) = load_text("nonsense", &json!({}));
    assert_eq!(status, 1);
    assert!(message(&told).starts_with("PTX line 1:1: "), "{told}");
    let (status, told) = load_text(TWICE, &json!({"entry": "thrice"}));
    assert_eq!((status, message(&told)), (1, "PTX there is no kernel `thrice` in this module"));
    let (status, told) = load_text(TWICE, &json!({"entrance": "twice"}));
    assert!(status == 1 && message(&told).contains("unknown field `entrance`"), "{told}");
}

#[test]
fn a_launch_runs_on_the_caller_s_memory() {
    let mut data: Vec<u32> = (0..64).collect();
    let (status, told) = twice(&mut data, 64, &json!({"schedule": "reversed", "jobs": 1}));
    assert_eq!(status, 0, "{told}");
    assert_eq!(told["findings"], json!([]));
    assert_eq!(told["statistics"]["ctas"], 1);
    assert!(data.iter().zip(0..).all(|(&got, at)| got == 2 * at), "{data:?}");
}

#[test]
fn findings_are_no_failure_and_tell_their_places() {
    let mut data: Vec<u32> = (0..64).collect();
    let last = std::ptr::from_ref(&data[63]) as u64;
    let (status, told) = twice(&mut data[..63], 64, &json!({}));
    assert_eq!(status, 0, "{told}");
    let read = &told["findings"][0];
    assert_eq!((&read["kind"], &read["severity"]), (&json!("out-of-bounds"), &json!("error")));
    assert_eq!(read["address"], last);
    let site = &read["sites"][0];
    assert_eq!((&site["file"], &site["line"]), (&json!("/somewhere/kernel.py"), &json!(7)));
    assert_eq!((&site["col"], &site["thread"]), (&json!(13), &json!(63)));
    assert_eq!(data[63], 63);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut data = [0_u32; 32];
    for (options, said) in [
        (json!({"schedule": "sideways"}), "no such schedule: sideways"),
        (json!({"mma": "fast"}), "no such mma: fast"),
        (json!({"colour": 1}), "unknown field `colour`"),
    ] {
        let (status, told) = twice(&mut data, 32, &options);
        assert!(status == 1 && message(&told).contains(said), "{told}");
    }
    let (status, told) = twice(&mut data, 0, &json!({}));
    assert!(status == 1 && message(&told).contains("between 1 and 1024"), "{told}");
    let kernel = handle(TWICE);
    let request = json!({"grid": [1, 1, 1], "block": [32, 1, 1], "buffers": []});
    let (status, told) = launch_of(kernel, &request, &[0; 4], &AtomicBool::new(false));
    assert!(status == 1 && message(&told).contains("4 bytes, the kernel takes 12"), "{told}");
    bitstable_ptx_unload(kernel);
    bitstable_ptx_unload(kernel);
    let (status, told) = launch_of(kernel, &request, &[0; 12], &AtomicBool::new(false));
    assert!(status == 1 && message(&told).contains("no kernel is loaded"), "{told}");
}

#[test]
fn a_launch_that_is_cancelled_ends_soon() {
    let kernel = handle(FOREVER);
    let request = json!({
        "grid": [4, 1, 1], "block": [32, 1, 1], "buffers": [],
        "options": {"step_limit": 1_u64 << 62},
    });
    let cancel = AtomicBool::new(false);
    thread::scope(|scope| {
        let run = scope.spawn(|| launch_of(kernel, &request, &[], &cancel));
        thread::sleep(Duration::from_millis(20));
        assert!(!run.is_finished());
        cancel.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        let (status, told) = run.join().expect("the launch returns");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!((status, &told["cancelled"]), (0, &json!(true)), "{told}");
    });
    bitstable_ptx_unload(kernel);
}
