//! Released trees, one after the other.

use mlx_overlay_engine::apply::Ground;
use mlx_overlay_engine::drift::{Item, judge};
use mlx_overlay_engine::lay::lay;
use mlx_overlay_engine::listing::Listing;
use mlx_overlay_engine::pin::Project;
use mlx_overlay_engine::rebase::{
    Decision, Decisions, Names, NewPin, Outcome, Part, Shown, Stop, plan, publish,
};
use mlx_overlay_engine::series::Series;
use mlx_overlay_engine::snapshot::{Tree, TreePath};
use overlay_tests_support::{Need, Suite};

use super::made::{self, Edit};
use super::{JUNE, V0_31_2, V0_32_2, loud, pin_files, pin_tree, released, this_pin, trees};

pub fn add(suite: &mut Suite) {
    suite.test_needing("released/this-series-on-v0.32.2", [pin_files(), trees()], this_series);
    let needs = || [trees(), Need::program("git", "git")];
    suite.test_needing("released/v0.31.2-to-june", needs(), to_june);
    suite.test_needing("released/june-to-v0.32.2", needs(), to_release);
    suite.test_needing("released/a-plan-over-june", needs(), planned);
    suite.test_needing("released/one-series-over-both-steps", needs(), both_steps);
}

/// Upstream's diff from the pin to v0.32.2: quantized.h and fp_quantized.h gained
/// the three `results_per_simdgroup` template parameters that our first entry
/// adds; quantized.cpp changed above `dispatch_qmv` (one line more) and not in it.
fn this_series() {
    let (_, pin) = this_pin();
    let series = Series::load(&pin).unwrap();
    let (pin, target) = (pin_tree().unwrap(), released(V0_32_2).unwrap());
    assert_eq!(loud(&judge(&series, &pin, &pin, "").unwrap()), [""; 0]);
    let found = judge(&series, &pin, &target, V0_32_2).unwrap();
    assert!(found.holds(), "{:?}", found.findings(None));
    let mut landed = 0;
    for (item, state) in found.states() {
        let is_fix = matches!(&item, Item::Hunk { entry, .. } if entry == "qmv-template-arguments");
        assert_eq!(state.as_str() == "landed", is_fix, "{item} is {state}");
        landed += usize::from(is_fix);
    }
    assert_eq!(landed, 3);
    let dispatch = found.contracts.iter().find(|v| v.name.ends_with("quantized.cpp:1738")).unwrap();
    assert_eq!(dispatch.moved_to.as_deref(), Some("mlx/backend/metal/quantized.cpp:1739"));
    let names = Names { pin: "pin", target: "v0.32.2", id: V0_32_2 };
    let plan = plan(&series, &pin, &target, names, &Decisions::default()).unwrap();
    assert!(plan.is_whole());
    for planned in &plan.entries {
        let is_fix = planned.name == "qmv-template-arguments";
        assert_eq!(planned.outcome == Outcome::Landed, is_fix, "{}", planned.name);
    }
}

const QUANTIZED: &str = "mlx/backend/metal/kernels/quantized.h";

const CONTRACTS: &str = "
[[watch]]
file = \"mlx/backend/metal/kernels/quantized.h\"
function = \"qvm_impl\"
reason = \"r\"
[[watch]]
file = \"mlx/backend/metal/kernels/quantized.h\"
function = \"qdot\"
reason = \"r\"
[[kernel]]
name = \"affine_qmv_{fast_,}float16_t_gs_64_b_{4,8}_batch_{0,1}\"
file = \"mlx/backend/metal/kernels/quantized.metal\"
host = { file = \"mlx/backend/metal/quantized.cpp\", function = \"qmv\" }
reason = \"r\"
[[cite]]
at = \"mlx/backend/metal/kernels/quantized.h:2093\"
symbol = \"affine_gather_qmm_t\"
reason = \"r\"
";

const OVER_V0_31_2: [Edit; 7] = [
    // The function that holds it is gone.
    Edit {
        name: "abort",
        file: "mlx/utils.cpp",
        from: "  std::abort();\n",
        to: "  std::terminate();\n",
    },
    // A line is added right under it.
    Edit {
        name: "epsilon",
        file: "mlx/utils.cpp",
        from: "  eps = numeric_limits<T>::epsilon();\n",
        to: "  eps = numeric_limits<T>::epsilon(); // ours\n",
    },
    // Upstream took the same two lines away.
    Edit {
        name: "empty",
        file: "mlx/compile.cpp",
        from: "      // Mark the entry as not empty since we are about to fill it\n      entry.empty = false;\n",
        to: "",
    },
    // An include is added two lines under it.
    Edit {
        name: "include",
        file: "mlx/stream.cpp",
        from: "#include \"mlx/stream.h\"\n",
        to: "#include \"mlx/stream.h\"\n#include \"mlx/utils.h\"\n",
    },
    // Nothing changes in this file.
    Edit {
        name: "and-or",
        file: "mlx/backend/metal/kernels/reduce.metal",
        from: "  instantiate_reduce_functions(name, int32, int32_t, bool, op) \\\n",
        to: "  instantiate_reduce_functions(name, int32, int32_t, bool, op) \\\n  /* ours */ \\\n",
    },
    // Seven lines come above it: 1 + 1 + 3 + 1 + 1.
    Edit {
        name: "gather",
        file: QUANTIZED,
        from: "[[kernel]] void affine_gather_qmm_t(\n",
        to: "/* ours */ [[kernel]] void affine_gather_qmm_t(\n",
    },
    // Four lines come above it, none of those by it.
    Edit {
        name: "softmax",
        file: "mlx/backend/metal/kernels/softmax.h",
        from: "  return fast::exp(x);\n",
        to: "  return metal::fast::exp(x);\n",
    },
];

fn to_june() {
    let (old, new) = (released(V0_31_2).unwrap(), released(JUNE).unwrap());
    let series = made::series(&old, &OVER_V0_31_2, CONTRACTS);
    assert_eq!(loud(&judge(&series, &old, &old, "").unwrap()), [""; 0]);
    let found = judge(&series, &old, &new, JUNE).unwrap();
    assert_eq!(
        loud(&found),
        [
            "abort, hunk 1: conflict",
            "epsilon, hunk 1: conflict",
            "empty, hunk 1: landed",
            "include, hunk 1: moved",
            "gather, hunk 1: moved",
            "watch qvm_impl: changed",
        ]
    );
    let hunk = |name: &str| {
        let entry = found.entries.iter().find(|e| e.name == name).unwrap();
        entry.patch.hunks[0].clone()
    };
    let include = hunk("include");
    assert_eq!(include.line, Some(include.stated_line));
    assert!(include.nearby.unwrap().diff.contains(&"+#include \"mlx/backend/cpu/eval.h\"".into()));
    let gather = hunk("gather");
    assert_eq!(gather.line, Some(gather.stated_line + 7));
    assert!(gather.nearby.is_none());
    let cite = found.contracts.iter().find(|v| v.name.ends_with(":2093")).unwrap();
    assert_eq!(cite.moved_to.as_deref(), Some(format!("{QUANTIZED}:2100").as_str()));
}

const OVER_JUNE: [Edit; 6] = [
    // The struct that holds it is gone from the file.
    Edit {
        name: "join",
        file: "mlx/scheduler.h",
        from: "    thread.join();\n",
        to: "    thread.detach();\n",
    },
    // Upstream added the same include.
    Edit {
        name: "algorithm",
        file: "mlx/random.cpp",
        from: "#include <cmath>\n",
        to: "#include <algorithm>\n#include <cmath>\n",
    },
    // The message is another one, on one line.
    Edit {
        name: "message",
        file: "mlx/random.cpp",
        from: "        \"[normal] Can only generate uniform numbers with \"\n",
        to: "        \"[normal] Can only make uniform numbers with \"\n",
    },
    // A namespace is put in at the very gap.
    Edit {
        name: "available",
        file: "mlx/backend/metal/metal.cpp",
        from: "bool is_available() {\n",
        to: "// Ours.\nbool is_available() {\n",
    },
    // Every line of the macro has other white space.
    Edit {
        name: "and-or",
        file: "mlx/backend/metal/kernels/reduce.metal",
        from: "  instantiate_reduce_functions(name, int32, int32_t, bool, op) \\\n",
        to: "  instantiate_reduce_functions(name, int32, int32_t, bool, op) \\\n  /* ours */ \\\n",
    },
    // Nothing changes in this file.
    Edit {
        name: "softmax",
        file: "mlx/backend/metal/kernels/softmax.h",
        from: "  return fast::exp(x);\n",
        to: "  return metal::fast::exp(x);\n",
    },
];

const JUNE_CONTRACTS: &str = "
[[kernel]]
name = \"affine_qmv_{fast_,}float16_t_gs_64_b_{4,8}_batch_{0,1}\"
file = \"mlx/backend/metal/kernels/quantized.metal\"
host = { file = \"mlx/backend/metal/quantized.cpp\", function = \"qmv\" }
reason = \"r\"
[[watch]]
file = \"mlx/backend/metal/kernels/softmax.h\"
function = \"softmax_exp\"
reason = \"r\"
[[watch]]
file = \"mlx/random.cpp\"
function = \"randint\"
reason = \"r\"
";

fn to_release() {
    let (old, new) = (released(JUNE).unwrap(), released(V0_32_2).unwrap());
    let series = made::series(&old, &OVER_JUNE, JUNE_CONTRACTS);
    let found = judge(&series, &old, &new, V0_32_2).unwrap();
    assert_eq!(
        loud(&found),
        [
            "join, hunk 1: conflict",
            "algorithm, hunk 1: landed",
            "message, hunk 1: conflict",
            "available, hunk 1: conflict",
            "and-or, hunk 1: conflict",
            "watch randint: changed",
        ]
    );
}

fn planned() {
    let (old, new) = (released(V0_31_2).unwrap(), released(JUNE).unwrap());
    let series = made::series(&old, &OVER_V0_31_2, CONTRACTS);
    let names = Names { pin: "v0.31.2", target: "june", id: JUNE };
    let first = plan(&series, &old, &new, names, &Decisions::default()).unwrap();
    let Some(Stop::Entry { report, parts }) = &first.stop else { panic!("{first:?}") };
    assert_eq!((report.name.as_str(), first.entries.len()), ("abort", 0));
    let [Part::Work(file)] = &parts[..] else { panic!("{parts:?}") };
    let Shown::Merged(marked) = &file.shown else { panic!("{file:?}") };
    let marked = String::from_utf8(marked.bytes.to_vec()).unwrap();
    assert!(marked.contains("bool is_main_thread() {"), "upstream's side is there");
    assert!(marked.contains("=======\n") && marked.contains("  std::terminate();\n"), "and ours");
}

/// Moves a project's series to a released tree, with what a person would decide
/// on the way; gives the outcomes.
fn moved(
    project: &Project,
    (old, new): (&dyn Tree, &dyn Tree),
    id: char,
    skip: &[&str],
    accept: &[&str],
) -> Vec<String> {
    let series = Series::load(&project.current).unwrap();
    let skipped = skip.iter().map(|name| ((*name).to_owned(), Decision::Skip));
    let accepted = accept.iter().map(|name| ((*name).to_owned(), "a test".to_owned()));
    let decisions = Decisions { entries: skipped.collect(), accepted: accepted.collect() };
    let commit = id.to_string().repeat(40);
    let names = Names { pin: "old", target: "new", id: &commit };
    let plan = plan(&series, old, new, names, &decisions).unwrap();
    assert!(plan.is_whole(), "{:?}", plan.stop);
    let listing = Listing::of(new).unwrap();
    let pin = NewPin { commit: commit.parse().unwrap(), date: "2026-06-16".into(), listing };
    publish(project, &series, &plan, &pin, new).unwrap();
    plan.entries.iter().map(|p| format!("{} {}", p.name, p.outcome.as_str())).collect()
}

/// The series laid on its pin's tree: every item exact. Gives the text of a file.
fn laid(project: &Project, tree: &dyn Tree, file: &str) -> String {
    let series = Series::load(&project.current).unwrap();
    assert_eq!(loud(&judge(&series, tree, tree, "").unwrap()), [""; 0]);
    let mut ground = Ground::mapped(tree, tree);
    lay(&series, &[], &mut ground).unwrap();
    let bytes = ground.target.file(&TreePath::new(file).unwrap()).unwrap().unwrap().bytes;
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// One series from v0.31.2 over June to v0.32.2. Upstream's diffs of the second
/// step: stream.cpp and softmax.h are the same files; in reduce.metal every line
/// of the macro has other white space; in quantized.h `qdot` and `qvm_impl` are
/// the same text, and `affine_gather_qmm_t` went from line 2100 to 2282.
fn both_steps() {
    let [first, june, last] = [V0_31_2, JUNE, V0_32_2].map(|s| released(s).unwrap());
    let root = tempfile::tempdir().unwrap();
    made::project(root.path(), 'a', &first, &OVER_V0_31_2, CONTRACTS);
    let project = Project::load(root.path()).unwrap();
    let outcomes =
        moved(&project, (&first, &june), 'b', &["abort", "epsilon"], &["watch qvm_impl"]);
    assert_eq!(
        outcomes,
        [
            "abort skipped",
            "epsilon skipped",
            "empty landed",
            "include refreshed",
            "and-or same",
            "gather refreshed",
            "softmax same",
        ]
    );
    let project = Project::load(root.path()).unwrap();
    let text = laid(&project, &june, QUANTIZED);
    assert_eq!(text.lines().nth(2099), Some("/* ours */ [[kernel]] void affine_gather_qmm_t("));

    let series = Series::load(&project.current).unwrap();
    let found = judge(&series, &june, &last, V0_32_2).unwrap();
    assert_eq!(loud(&found), ["and-or, hunk 1: conflict", "gather, hunk 1: moved"]);
    let cite = found.contracts.iter().find(|v| v.name.ends_with(":2100")).unwrap();
    assert_eq!(cite.moved_to.as_deref(), Some(format!("{QUANTIZED}:2282").as_str()));
    let outcomes = moved(&project, (&june, &last), 'c', &["and-or"], &[]);
    assert_eq!(outcomes, ["include same", "and-or skipped", "gather refreshed", "softmax same"]);
    let project = Project::load(root.path()).unwrap();
    let text = laid(&project, &last, QUANTIZED);
    assert_eq!(text.lines().nth(2281), Some("/* ours */ [[kernel]] void affine_gather_qmm_t("));
    let text = laid(&project, &last, "mlx/stream.cpp");
    assert!(text.contains("#include \"mlx/stream.h\"\n#include \"mlx/utils.h\"\n"), "{text}");
    // The older pins still lay as they did.
    for (id, tree) in [('a', &first), ('b', &june)] {
        let older = project.select(Some(&id.to_string().repeat(40))).unwrap();
        let series = Series::load(older).unwrap();
        assert_eq!(loud(&judge(&series, tree, tree, "").unwrap()), [""; 0]);
    }
}
