//! Upstream edits that apply cleanly and change the meaning, seeded into the
//! pin's own files: each is found by its contract.

use mlx_overlay_engine::contract::{ContractKind, Status, Verdict};
use mlx_overlay_engine::drift::judge;
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::snapshot::{File, Snapshot, Tree, TreePath};
use overlay_tests_support::Suite;

use super::{pin_files, pin_tree, this_pin};

pub fn add(suite: &mut Suite) {
    suite.test_needing("seeded/breaks-that-apply-are-found", [pin_files()], breaks);
    suite.test_needing("seeded/layout-is-no-alarm", [pin_files()], layout);
    suite.test_needing("seeded/citations-move", [pin_files()], citations);
}

const HEADER: &str = "mlx/backend/metal/kernels/quantized.h";
const METAL: &str = "mlx/backend/metal/kernels/quantized.metal";
const HOST: &str = "mlx/backend/metal/quantized.cpp";

/// What is replaced in which file, counted from 0 where it stands often, and
/// the contract that must tell.
const BREAKS: [(&str, &str, &str, usize, &str, &str, Status); 19] = [
    (
        "the accumulation is split",
        HEADER,
        "result[row] += qdot<U, values_per_thread, bits>(wl, x_thread, s, b, sum);",
        1,
        "U part = qdot<U, values_per_thread, bits>(wl, x_thread, s, b, sum); result[row] += part;",
        "qmv_fast_impl",
        Status::Changed,
    ),
    (
        "a kernel has another name",
        METAL,
        "\"_batch_\" #batched,",
        0,
        "\"_bt_\" #batched,",
        "affine_qmv_{fast_,}{float,float16_t,bfloat16_t}_gs_{32,64,128}_b_{2,3,4,5,6,8}_batch_{0,1}",
        Status::Broken,
    ),
    (
        "the host asks for another name",
        HOST,
        "mode + (fast ? \"_qmv_fast_\" : \"_qmv_\"),",
        0,
        "mode + (fast ? \"_qmvf_\" : \"_qmv_\"),",
        "affine_qmv_{fast_,}{float,float16_t,bfloat16_t}_gs_{32,64,128}_b_{2,3,4,5,6,8}_batch_{0,1}",
        Status::Broken,
    ),
    (
        "the predicate is another",
        HOST,
        "bool fast = N % bn == 0 && K % qmv_fast_k_alignment(bits) == 0;",
        0,
        "bool fast = N % bn == 0 || K % qmv_fast_k_alignment(bits) == 0;",
        "qmv",
        Status::Changed,
    ),
    (
        "the predicate changes after it was made",
        HOST,
        "int results_per_simdgroup = use_narrow_qmv ? 2 : 4;",
        0,
        "int results_per_simdgroup = use_narrow_qmv ? 2 : 4; fast = fast && M < 3;",
        "qmv",
        Status::Changed,
    ),
    (
        "the host takes one vector elsewhere",
        HOST,
        "bool fast = N % bn == 0 && K % qmv_fast_k_alignment(bits) == 0;",
        0,
        "if (M == 1) return; bool fast = N % bn == 0 && K % qmv_fast_k_alignment(bits) == 0;",
        "qmv",
        Status::Changed,
    ),
    (
        "kernels compiled ahead have fast math too",
        "mlx/backend/metal/kernels/CMakeLists.txt",
        "-fno-fast-math",
        0,
        "-fno-fast-math -ffast-math",
        "mlx/backend/metal/kernels/CMakeLists.txt: function(build_kernel_base TARGET SRCFILE DEPS)",
        Status::Changed,
    ),
    (
        "a pragma stands before the functions",
        HEADER,
        "#include <metal_simdgroup>",
        0,
        "#include <metal_simdgroup>\n#pragma clang fp reassociate(on)\n",
        "mlx/backend/metal/kernels/quantized.h: #include <metal_simdgroup>",
        Status::Changed,
    ),
    (
        "the host packs otherwise than the kernels of that name",
        "mlx/backend/common/quantized.h",
        "(bits == 3 || bits == 5) ? 8",
        0,
        "(bits == 3 || bits == 5) ? 16",
        "mlx::core::get_pack_factor",
        Status::Changed,
    ),
    (
        "kernels from text are compiled with fast math",
        "mlx/backend/common/metal_kernel.h",
        "MathMode math_mode = MathMode::Safe;",
        0,
        "MathMode math_mode = MathMode::Fast;",
        "mlx/backend/common/metal_kernel.h: struct CompileOptions {",
        Status::Changed,
    ),
    (
        "a library without options is compiled with fast math",
        "mlx/backend/metal/device.h",
        "return get_library(name, {}, builder);",
        0,
        "return get_library(name, {MathMode::Fast}, builder);",
        "mlx/backend/metal/device.h: const std::function<std::string(void)>& builder) {",
        Status::Changed,
    ),
    (
        "kernels are compiled ahead by another function",
        "mlx/backend/metal/kernels/CMakeLists.txt",
        "build_kernel_base(${TARGET} ${SRCFILE} \"${ARGN}\")",
        0,
        "build_kernel_fast(${TARGET} ${SRCFILE} \"${ARGN}\")",
        "mlx/backend/metal/kernels/CMakeLists.txt: function(build_kernel KERNEL)",
        Status::Changed,
    ),
    (
        "short rows go another way after the first vector",
        HEADER,
        "  qmv_quad_impl<T, group_size, bits, D>(",
        0,
        "  if (tid.x > 0) return;\n  qmv_quad_impl<T, group_size, bits, D>(",
        "affine_qmv_quad",
        Status::Changed,
    ),
    (
        "a macro stands for what a function calls",
        HEADER,
        "using namespace metal;",
        0,
        "using namespace metal;\n#define qdot qdot_v2",
        "qmv_fast_impl",
        Status::Changed,
    ),
    (
        "a pragma stands before the kernels",
        METAL,
        "#include \"mlx/backend/metal/kernels/quantized.h\"",
        0,
        "#pragma METAL fp contract(fast)\n#include \"mlx/backend/metal/kernels/quantized.h\"",
        "mlx/backend/metal/kernels/quantized.metal: #include \"mlx/backend/metal/kernels/utils.h\"",
        Status::Changed,
    ),
    (
        "each thread counts its streams",
        "mlx/stream.cpp",
        "static std::tuple<std::vector<Stream>, std::shared_mutex>",
        0,
        "static thread_local std::tuple<std::vector<Stream>, std::shared_mutex>",
        "all_streams",
        Status::Changed,
    ),
    (
        "a limit is another",
        HOST,
        "return 33;",
        0,
        "return 34;",
        "get_qmv_batch_limit",
        Status::Changed,
    ),
    (
        "the sum is reduced otherwise",
        HEADER,
        "result[row] = simd_sum(result[row]);",
        0,
        "result[row] = simd_shuffle_down(result[row], 16);",
        "qmv_fast_impl",
        Status::Changed,
    ),
    (
        "the loads sum in another type",
        HEADER,
        "sum += x[i] + x[i + 1] + x[i + 2] + x[i + 3];",
        0,
        "sum += U(x[i]) + x[i + 1] + x[i + 2] + x[i + 3];",
        "load_vector",
        Status::Changed,
    ),
];

fn edited<'t>(tree: &'t dyn Tree, file: &str, from: &str, nth: usize, to: &str) -> Snapshot<'t> {
    let path = TreePath::new(file).unwrap();
    let before = tree.file(&path).unwrap().expect("a file of the pin");
    let text = String::from_utf8(before.bytes.to_vec()).unwrap();
    let at = text.match_indices(from).nth(nth).unwrap_or_else(|| panic!("{file}: {from}")).0;
    let text = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
    let mut snapshot = Snapshot::new(tree);
    snapshot.put(path, File::new(before.mode, text.into_bytes()));
    snapshot
}

fn breaks() {
    let (_, pin) = this_pin();
    let series = Series::load(&pin).unwrap();
    let pin = pin_tree().unwrap();
    for (what, file, from, nth, to, contract, status) in BREAKS {
        let target = edited(&pin, file, from, nth, to);
        let found = judge(&series, &pin, &target, "seeded").unwrap();
        let laid = found.entries.iter().all(|e| e.patch.hunks.iter().all(|h| h.class.holds()));
        assert!(laid, "{what}: the series applies, which is what makes it dangerous");
        let verdict = found.contracts.iter().find(|v| v.name == contract);
        let verdict = verdict.unwrap_or_else(|| panic!("no contract {contract}"));
        assert_eq!(verdict.status, status, "{what}: {verdict:?}");
        assert!(!found.holds(), "{what}");
    }
}

fn layout() {
    let (_, pin) = this_pin();
    let series = Series::load(&pin).unwrap();
    let pin = pin_tree().unwrap();
    let from = "result[row] += qdot<U, values_per_thread, bits>(wl, x_thread, s, b, sum);";
    let to = "// The dot product.\n      result[row] +=\n          qdot<U, values_per_thread, bits>(wl, x_thread, s, b, sum);";
    let target = edited(&pin, HEADER, from, 0, to);
    let found = judge(&series, &pin, &target, "seeded").unwrap();
    let loud: Vec<_> = found.contracts.iter().filter(|v| v.status != Status::Held).collect();
    assert!(loud.is_empty(), "{loud:?}");
}

fn citations() {
    let (_, pin) = this_pin();
    let series = Series::load(&pin).unwrap();
    let pin = pin_tree().unwrap();
    let target = edited(&pin, HEADER, "#include", 0, "// A line.\n// Another.\n#include");
    let found = judge(&series, &pin, &target, "seeded").unwrap();
    let own = |v: &&Verdict| v.kind == ContractKind::Cite && v.name.starts_with(HEADER);
    let cites = found.contracts.iter().filter(own).map(|v| {
        let line = |at: &str| -> usize {
            let lines = at.rsplit(':').next().unwrap();
            lines.split('-').next().unwrap().parse().unwrap()
        };
        (line(&v.name), v.moved_to.as_deref().map(line))
    });
    let cites: Vec<_> = cites.collect();
    assert!(cites.len() >= 4);
    for (was, now) in cites {
        assert_eq!(now, Some(was + 2));
    }
}
