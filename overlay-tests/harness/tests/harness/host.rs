//! A tree of one small kernel, so that each test says all of what it runs.

use std::fs;
use std::path::Path;

use mlx_overlay_harness::kernels::{Family, Kernel, Number, Order};
use mlx_overlay_harness::runner::{Buffer, Dispatch, Runner, Sweep};
use mlx_overlay_harness::toolchain::Toolchain;
use mlx_overlay_harness::units::{address_space_units, units};
use mlx_overlay_harness::workshop::{LinkKind, Mode, Workshop};
use overlay_tests_support::Suite;

use crate::clang;

pub fn add(suite: &mut Suite) {
    let mut test = |name: &str, body: fn()| {
        suite.test_needing(format!("host::{name}"), [clang()], body);
    };
    test("lanes_meet_at_simd_sum", lanes_meet_at_simd_sum);
    test("lanes_that_do_not_meet_are_an_error", lanes_that_do_not_meet_are_an_error);
    test("lanes_that_diverge_to_two_sums_are_an_error", lanes_that_diverge_to_two_sums);
    test("the_sweep_decides_who_stores_last", the_sweep_decides_who_stores_last);
    test("a_read_past_a_buffer_is_an_error", a_read_past_a_buffer_is_an_error);
    test("a_write_to_an_input_is_an_error", a_write_to_an_input_is_an_error);
    test("a_barrier_is_refused", a_barrier_is_refused);
    test("a_kernel_that_does_not_end_is_an_error", a_kernel_that_does_not_end_is_an_error);
    test("an_unknown_kernel_is_refused", an_unknown_kernel_is_refused);
    test("denormals_are_flushed", denormals_are_flushed);
    test("products_of_one_expression_fuse", products_of_one_expression_fuse);
    test("a_device_thread_mix_up_does_not_compile", a_device_thread_mix_up_does_not_compile);
    test("a_folder_without_kernels_is_refused", a_folder_without_kernels_is_refused);
}

const KERNEL: Kernel = Kernel {
    family: Family::Narrow(Order::Generic),
    number: Number::Float,
    group_size: 32,
    bits: 4,
    vectors: 1,
    batched: false,
};

/// Writes a tree whose `affine_qmv` has this body and calls `take`, a function
/// of a device pointer.
fn plant(folder: &Path, body: &str) {
    let kernels = folder.join("mlx/backend/metal/kernels");
    fs::create_dir_all(&kernels).unwrap();
    let text = format!(
        "template <typename T>\nT take(const device T* from) {{ return from[0]; }}\n\
         template <typename T, int group_size, int bits, bool batched>\n\
         [[kernel]] void affine_qmv(\n    const device T* in [[buffer(0)]],\n    \
         device T* out [[buffer(1)]],\n    uint3 tid [[threadgroup_position_in_grid]],\n    \
         uint simd_gid [[simdgroup_index_in_threadgroup]],\n    \
         uint simd_lid [[thread_index_in_simdgroup]]) {{\n{body}\n}}\n\
         #define instantiate_quantized_funcs(type, gs, b) \\\n  instantiate_kernel(\\\n    \
         \"affine_qmv_\" #type \"_gs_\" #gs \"_b_\" #b \"_batch_0\",\\\n    \
         affine_qmv, type, gs, b, 0)\n"
    );
    fs::write(kernels.join("quantized.metal"), text).unwrap();
}

/// Runs a body over 32 inputs and gives the 32 outputs.
fn outcome(body: &str, input: &[f32; 32]) -> Result<Vec<f32>, String> {
    swept(body, input, Sweep::Ascending)
}

fn swept(body: &str, input: &[f32; 32], sweep: Sweep) -> Result<Vec<f32>, String> {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), body);
    let cache = folder.path().join("cache");
    let shop = Workshop::open(Toolchain::find().unwrap(), folder.path(), &cache).unwrap();
    let mut objects: Vec<_> =
        units([KERNEL], Mode::Checked).iter().map(|unit| shop.compile(unit).unwrap()).collect();
    objects.extend(shop.runtime(Mode::Checked, &["serve.cpp"]).unwrap());
    let program = shop.link(&objects, Mode::Checked, LinkKind::Program).unwrap();
    let dispatch = Dispatch {
        kernel: KERNEL.host_name(),
        grid: [1, 1, 1],
        group: [32, 1, 1],
        sweep,
        buffers: vec![
            Buffer {
                index: 0,
                is_output: false,
                bytes: input.iter().flat_map(|value| value.to_le_bytes()).collect(),
            },
            Buffer { index: 1, is_output: true, bytes: vec![0; 128] },
        ],
    };
    let mut runner = Runner::start_for(&program, 2).unwrap();
    let outputs = runner.run(&dispatch).unwrap()?;
    let values = outputs[0].chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap()));
    Ok(values.collect())
}

fn ramp() -> [f32; 32] {
    std::array::from_fn(|i| i as f32)
}

fn lanes_meet_at_simd_sum() {
    let got = outcome(
        "out[simd_lid] = simd_sum(in[simd_lid]) + simd_shuffle_down(in[simd_lid], 1);",
        &ramp(),
    );
    let expected: Vec<f32> = (0..32).map(|i| 496.0 + (i + 1).min(31) as f32).collect();
    assert_eq!(got.unwrap(), expected);
}

fn lanes_that_do_not_meet_are_an_error() {
    let got = outcome("if (simd_lid != 3) out[simd_lid] = simd_sum(in[simd_lid]);", &ramp());
    assert!(got.unwrap_err().contains("do not meet"));
}

fn lanes_that_diverge_to_two_sums() {
    let sums = "T a = in[simd_lid]; if (simd_lid < 16) { out[simd_lid] = simd_sum(a); } \
                else { out[simd_lid] = simd_sum(a); }";
    assert!(outcome(sums, &ramp()).unwrap_err().contains("at one call of a collective"));
    let others = "T a = in[simd_lid]; out[simd_lid] = simd_lid < 16 ? simd_max(a) : simd_min(a);";
    assert!(outcome(others, &ramp()).unwrap_err().contains("at one call of a collective"));
}

fn the_sweep_decides_who_stores_last() {
    let race = "out[0] = simd_sum(in[simd_lid]) + simd_lid;";
    let last = |sweep| swept(race, &ramp(), sweep).unwrap()[0];
    // The last lane to arrive goes on first, the others in their order.
    assert_eq!(last(Sweep::Ascending), 496.0 + 30.0);
    assert_eq!(last(Sweep::Descending), 496.0 + 1.0);
}

fn a_read_past_a_buffer_is_an_error() {
    let got = outcome("out[simd_lid] = in[simd_lid + 1];", &ramp());
    assert!(got.unwrap_err().contains("heap-buffer-overflow"));
}

fn a_write_to_an_input_is_an_error() {
    let got = outcome("((device T*)in)[simd_lid] = 1; out[simd_lid] = 0;", &ramp());
    assert!(got.unwrap_err().contains("wrote into its input, buffer 0"));
}

fn a_barrier_is_refused() {
    let got = outcome("threadgroup_barrier(mem_flags::mem_threadgroup);", &ramp());
    assert!(got.unwrap_err().contains("barrier"));
}

fn a_kernel_that_does_not_end_is_an_error() {
    let got = outcome("while (in[0] > out[0]) {}", &[1.0; 32]);
    assert!(got.unwrap_err().contains("the kernel does not end"));
}

fn an_unknown_kernel_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), "");
    let cache = folder.path().join("cache");
    let shop = Workshop::open(Toolchain::find().unwrap(), folder.path(), &cache).unwrap();
    let objects = shop.runtime(Mode::Checked, &["serve.cpp"]).unwrap();
    let program = shop.link(&objects, Mode::Checked, LinkKind::Program).unwrap();
    let dispatch = Dispatch {
        kernel: "none".into(),
        grid: [1; 3],
        group: [32, 1, 1],
        sweep: Sweep::Ascending,
        buffers: vec![],
    };
    let got = Runner::start(&program).unwrap().run(&dispatch).unwrap();
    assert!(got.unwrap_err().contains("no kernel of this host name"));
}

fn denormals_are_flushed() {
    let tiny = [f32::from_bits(1); 32];
    assert_eq!(outcome("out[simd_lid] = in[simd_lid] * 1.5f;", &tiny).unwrap(), [0.0; 32]);
}

fn products_of_one_expression_fuse() {
    // x * x - round(x * x) is the rounding error where the product fuses, and
    // nothing where it was named.
    let x = [1.0 + f32::EPSILON; 32];
    let fused = "T p = in[0] * in[0]; out[simd_lid] = in[0] * in[0] - p;";
    let named = "T p = in[0] * in[0]; T q = in[0] * in[0]; out[simd_lid] = q - p;";
    assert_eq!(outcome(fused, &x).unwrap(), [f32::EPSILON * f32::EPSILON; 32]);
    assert_eq!(outcome(named, &x).unwrap(), [0.0; 32]);
}

fn a_device_thread_mix_up_does_not_compile() {
    let check = |body: &str| {
        let folder = tempfile::tempdir().unwrap();
        plant(folder.path(), body);
        let cache = folder.path().join("cache");
        let shop = Workshop::open(Toolchain::find().unwrap(), folder.path(), &cache).unwrap();
        [Number::Float, Number::Half].map(|number| {
            let units = address_space_units([Kernel { number, ..KERNEL }]);
            shop.check(&units[0]).map_err(|error| error.to_string())
        })
    };
    assert_eq!(check("out[0] = take(in);"), [Ok(()), Ok(())]);
    let mixed = check("thread T own[1] = {in[0]}; out[0] = take((const thread T*)own);");
    for refused in mixed {
        assert!(refused.unwrap_err().contains("no matching function for call to 'take'"));
    }
}

fn a_folder_without_kernels_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let refused = Workshop::open(Toolchain::find().unwrap(), folder.path(), &cache).unwrap_err();
    assert!(refused.to_string().contains("quantized.metal is missing"));
}
