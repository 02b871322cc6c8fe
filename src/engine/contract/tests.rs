use super::*;
use crate::patch::parse;
use crate::snapshot::{File, MemoryTree, Mode};

const HEADER: &str = "\
// Copyright
template <typename T>
METAL_FUNC void qmv_impl(device T* y, int n) {
  T sum = 0;
  for (int i = 0; i < n; i++) {
    sum += y[i]; // accumulate
  }
  bool fast = n % 8 == 0 && n > 4;
  y[0] = sum;
}

#define SIMD_SIZE 32
template <typename T, int bits>
[[kernel]] void qmv(device T* y [[buffer(0)]]) { qmv_impl(y, bits); }
";

const METAL: &str = "\
#include \"q.h\"
#define instantiate_kernel(name, func, ...) \\
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
#define one(name, type, bits) instantiate_kernel(#name \"_\" #type \"_b_\" #bits, name, type, bits)
one(qmv, float, 4) one(qmv, float16_t, 4)
";

const HOST: &str = "\
void dispatch(bool wide) {
  concatenate(name, \"qmv_\", type, \"_b_\", bits);
}
";

fn tree(header: &str, metal: &str, host: &str) -> MemoryTree {
    let file = |name: &str, text: &str| {
        let path = TreePath::new(name).expect("a plain path");
        (path, File::new(Mode::Regular, text.as_bytes()))
    };
    MemoryTree([file("q.h", header), file("q.metal", metal), file("q.cpp", host)].into())
}

fn tree_of(name: &str, text: &str) -> MemoryTree {
    let path = TreePath::new(name).expect("a plain path");
    MemoryTree([(path, File::new(Mode::Regular, text.as_bytes()))].into())
}

fn pin() -> MemoryTree {
    tree(HEADER, METAL, HOST)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default)]
    watch: Vec<Watch>,
    #[serde(default)]
    kernel: Vec<Kernel>,
    #[serde(default)]
    cite: Vec<Cite>,
    #[serde(default)]
    note: Vec<Note>,
}

fn contracts(text: &str) -> Contracts {
    let Stored { watch, kernel, cite, note } = toml::from_str(text).expect("contracts");
    Contracts { watch, kernel, cite, note }
}

fn all() -> Contracts {
    contracts(
        "
[[watch]]
file = 'q.h'
function = 'qmv_impl'
reason = 'the twin repeats it'
[[watch]]
file = 'q.h'
function = 'qmv_impl'
from = 'bool  fast='
reason = 'the same predicate'
[[watch]]
file = 'q.h'
from = '#define SIMD_SIZE'
reason = 'lanes'
[[kernel]]
name = 'qmv_{float,float16_t}_b_4'
file = 'q.metal'
host = { file = 'q.cpp', function = 'dispatch' }
reason = 'asked for by name'
[[cite]]
at = 'q.h:5-7'
symbol = 'qmv_impl'
reason = 'docs'
[[cite]]
at = 'q.h:12'
symbol = 'SIMD_SIZE'
reason = 'docs'
",
    )
}

fn verdicts(header: &str, metal: &str, host: &str) -> Vec<Verdict> {
    check(&all(), &pin(), &tree(header, metal, host), "new").expect("memory is read")
}

fn statuses(header: &str, metal: &str, host: &str) -> Vec<&'static str> {
    verdicts(header, metal, host).iter().map(|v| v.status.as_str()).collect()
}

const HELD: [&str; 6] = ["held"; 6];

fn but(changes: &[(usize, &'static str)]) -> Vec<&'static str> {
    let mut all = HELD.to_vec();
    changes.iter().for_each(|(i, status)| all[*i] = status);
    all
}

#[test]
fn at_its_own_pin_every_contract_holds() {
    assert_eq!(statuses(HEADER, METAL, HOST), HELD, "{:#?}", verdicts(HEADER, METAL, HOST));
}

#[test]
fn layout_and_comments_are_no_alarm() {
    let spread = HEADER.replace("sum += y[i]; // accumulate", "sum +=\n        y[i];");
    let spread =
        spread.replace("bool fast = n % 8 == 0 && n > 4", "bool fast =\n  n % 8 == 0 && n > 4");
    // The cited loop body is another line now, and says so.
    assert_eq!(statuses(&spread, METAL, HOST), HELD);
    let verdicts = verdicts(&spread, METAL, HOST);
    assert!(verdicts[0].what.contains("no token did"), "{verdicts:?}");
    assert_eq!(verdicts[4].moved_to.as_deref(), Some("q.h:5-8"));
    assert_eq!(verdicts[5].moved_to.as_deref(), Some("q.h:14"));
}

#[test]
fn a_split_accumulation_is_found() {
    let split = HEADER.replace("i++) {", "i += 2) {").replace("y[i];", "y[i] + y[i + 1];");
    let verdicts = verdicts(&split, METAL, HOST);
    assert_eq!(statuses(&split, METAL, HOST), but(&[(0, "changed"), (4, "changed")]));
    assert_eq!(
        verdicts[0].what,
        "its tokens changed: `; i ++ ) { sum += y` became `; i += 2 ) { sum +=`"
    );
    assert!(verdicts[0].diff.contains(&"-  for (int i = 0; i < n; i++) {".to_owned()));
    assert!(verdicts[0].diff[0].starts_with("@@ -2,"), "{:?}", verdicts[0].diff);
}

#[test]
fn what_stands_around_a_text_can_change_its_meaning() {
    let head = "// Copyright\n";
    for (put, says) in [
        ("#if 0\n", "under `#if 0` of line 2"),
        ("#define SIMD_SIZE 64\n#if SIMD_SIZE == 32\n", "under `#if SIMD_SIZE == 32` of line 3"),
        (
            "#define accumulate x\n#define METAL_FUNC inline\n",
            "`#define METAL_FUNC inline` of line 3",
        ),
        ("#undef METAL_FUNC\n", "`#undef METAL_FUNC` of line 2"),
        ("#pragma METAL fp contract(fast)\n", "`#pragma METAL fp contract ( fast )` of line 2"),
    ] {
        let header = HEADER.replace(head, &format!("{head}{put}"));
        let found = verdicts(&header, METAL, HOST).swap_remove(0);
        assert_eq!(found.status, Status::Changed, "{put}");
        assert!(found.what.contains(says), "{put}{}", found.what);
    }
    // What follows it, stands in another function, or names none of its words.
    for put in [
        "#pragma once\n",
        "#if A\nint a;\n#endif\n",
        "#define UNUSED 1\n",
        "void f() {\n#pragma unroll\n  g();\n}\n",
    ] {
        let header = HEADER.replace(head, &format!("{head}{put}"));
        assert_eq!(verdicts(&header, METAL, HOST)[0].status, Status::Held, "{put}");
    }
    // What guards a header from being read twice, and a condition that is spelled otherwise.
    let around = |open: &str| HEADER.replace(head, &format!("{head}{open}\n")) + "#endif\n";
    let watched = |pin: &str, target: &str| {
        let (pin, target) = (tree(pin, METAL, HOST), tree(target, METAL, HOST));
        check(&all(), &pin, &target, "new").expect("memory is read").swap_remove(0).status
    };
    let guarded = around("#ifndef Q_H\n#define Q_H");
    let once = HEADER.replace(head, &format!("{head}#pragma once\n"));
    for (pin, target, status) in [
        (&guarded, &once, Status::Held),
        (&once, &guarded, Status::Held),
        (&once, &around("#pragma once\n#ifndef Q_H\n#define Q_H"), Status::Held),
        (&guarded, &around("#ifndef Q_H\n#define Q_H\n#pragma once"), Status::Held),
        (&once, &around("int more;\n#pragma once\n#ifndef Q_H\n#define Q_H"), Status::Changed),
        (&once, &around("#ifndef Q_H\n#define Q_HH"), Status::Changed),
        (&once, &around("#ifdef Q_H\n#define Q_H"), Status::Changed),
        (&once, &(guarded.clone() + "int more;\n"), Status::Changed),
        (&once, &guarded.replace("#endif", "#else\n#endif"), Status::Changed),
        (&around("#ifdef A"), &around("#if defined(A)"), Status::Held),
        (&around("#if !defined A"), &around("#ifndef A"), Status::Held),
        (&around("#ifdef A"), &around("#ifndef A"), Status::Changed),
        (&around("#ifdef A"), &around("#if A"), Status::Changed),
        (&around("#if B\n#elifdef A"), &around("#if B\n#elif defined(A)"), Status::Held),
    ] {
        assert_eq!(watched(pin, target), status, "{pin}{target}");
    }
    let within = |put: &str| HEADER.replace("  y[0] = sum;\n", put);
    let defined = within("#ifdef A\n  y[0] = sum;\n#endif\n");
    let spelled = within("#if defined(A)\n  y[0] = sum;\n#endif\n");
    assert_eq!(watched(&defined, &spelled), Status::Held);
    assert_eq!(watched(&defined, &defined.replace("ifdef", "ifndef")), Status::Changed);
    let after = format!("{HEADER}#undef METAL_FUNC\n");
    assert_eq!(verdicts(&after, METAL, HOST)[0].status, Status::Held);
    // A `#` of another language.
    let pin = tree_of("CMakeLists.txt", "set(A 1)\n");
    let target = tree_of("CMakeLists.txt", "# if A\nset(A 1)\n");
    let watch =
        contracts("[[watch]]\nfile = 'CMakeLists.txt'\nfrom = 'set'\nto = '(A 1)'\nreason = 'r'");
    assert_eq!(check(&watch, &pin, &target, "").unwrap()[0].status, Status::Held);
}

#[test]
fn a_macro_with_parameters_is_another() {
    let watch = contracts("[[watch]]\nfile = 'q.h'\nfrom = '#define L'\nreason = 'r'");
    let used = contracts("[[watch]]\nfile = 'q.h'\nfunction = 'f'\nreason = 'r'");
    let header = |define: &str| tree_of("q.h", &format!("{define}\nint f() {{ return L(1); }}\n"));
    for (from, to, status) in [
        ("#define L (x)", "#define L(x)", Status::Changed),
        ("#define L(x)", "#define L (x)", Status::Changed),
        ("#define L (x)", "#define L  ( x ) // why", Status::Held),
        ("#define L(x) x", "#define  L( x ) x", Status::Held),
    ] {
        for contracts in [&watch, &used] {
            let found = check(contracts, &header(from), &header(to), "").expect("memory is read");
            assert_eq!(found[0].status, status, "{to}: {}", found[0].what);
        }
    }
    let found = check(&watch, &header("#define L (x)"), &header("#define L(x)"), "").expect("read");
    assert_eq!(found[0].what, "the same tokens, but `#define L ( x )` has parameters now");
}

#[test]
fn a_changed_predicate_is_found() {
    let changed = HEADER.replace("n > 4", "n > 8");
    assert_eq!(statuses(&changed, METAL, HOST), but(&[(0, "changed"), (1, "changed")]));
}

#[test]
fn a_gone_anchor_or_function_is_broken() {
    let renamed = HEADER.replace("bool fast", "bool quick");
    assert_eq!(statuses(&renamed, METAL, HOST), but(&[(0, "changed"), (1, "broken")]));
    let gone = HEADER.replace("qmv_impl", "qmv_core");
    assert_eq!(statuses(&gone, METAL, HOST), but(&[(0, "broken"), (1, "broken"), (4, "broken")]));
}

#[test]
fn a_renamed_kernel_is_found() {
    let renamed = METAL.replace("\"_b_\"", "\"_bits_\"");
    assert_eq!(statuses(HEADER, &renamed, HOST), but(&[(3, "broken")]));
    let verdicts = verdicts(HEADER, &renamed, HOST);
    assert_eq!(
        verdicts[3].what,
        "2 of 2 names are not instantiated, first `qmv_float_b_4`; the nearest is `qmv_float_bits_4`"
    );
}

#[test]
fn a_name_the_host_no_longer_spells_is_found() {
    let host = HOST.replace("\"_b_\"", "\"_bits_\"");
    assert_eq!(statuses(HEADER, METAL, &host), but(&[(3, "broken")]));
    let gone = HOST.replace("dispatch", "send");
    assert_eq!(statuses(HEADER, METAL, &gone), but(&[(3, "broken")]));
}

#[test]
fn a_kernel_that_cannot_be_told_is_not_held() {
    let metal = METAL.replace("q.h", "gone.h").replace("qmv, float16_t", "other, float16_t");
    let verdicts = verdicts(HEADER, &metal, HOST);
    assert_eq!(verdicts[3].what, "cannot tell: this tree has no \"gone.h\", which it includes");
}

#[test]
fn a_moved_citation_gets_its_new_line() {
    let moved = HEADER.replace("// Copyright\n", "// Copyright\n\nint lines, above;\n");
    assert_eq!(statuses(&moved, METAL, HOST), HELD);
    let verdicts = verdicts(&moved, METAL, HOST);
    assert_eq!(verdicts[4].moved_to.as_deref(), Some("q.h:7-9"));
    assert_eq!(verdicts[4].what, "`qmv_impl` is at q.h:7-9 now");
}

/// The cited lines are looked up in the function, and not at its head.
#[test]
fn a_citation_follows_a_function_that_moved_within_its_file() {
    let (body, other) = (
        "int f(int n) {\n  int a = 0;\n  a += n;\n  a *= n;\n  return a;\n}\n",
        (0..9).map(|i| format!("int g{i}(int n) {{\n  return n + {i};\n}}\n")).collect::<String>(),
    );
    let limit = "#define LIMIT 8\n";
    let at = |text: &str| tree(text, METAL, HOST);
    let one = contracts(
        "[[cite]]\nat = 'q.h:4-5'\nsymbol = 'f'\nreason = 'r'\n\
         [[cite]]\nat = 'q.h:1'\nsymbol = 'LIMIT'\nreason = 'r'",
    );
    let pin = at(&format!("{limit}{body}{other}"));
    let check = |text: &str| check(&one, &pin, &at(text), "new").expect("memory is read");
    let found = check(&format!("{other}{body}{limit}"));
    let status = |v: &[Verdict]| [v[0].status, v[1].status];
    assert_eq!(status(&found), [Status::Held, Status::Held], "{found:#?}");
    let moved: Vec<_> = found.iter().map(|v| v.moved_to.as_deref()).collect();
    assert_eq!(moved, [Some("q.h:30-31"), Some("q.h:34")]);
    // Nothing is held where the lines are not as they were.
    let other_body = body.replace("a += n", "a -= n");
    let found = check(&format!("{other}{other_body}{}", limit.replace('8', "9")));
    assert_eq!(status(&found), [Status::Changed, Status::Changed], "{found:#?}");
}

#[test]
fn a_citation_follows_a_macro_that_says_the_same() {
    let header = "int a;\n#define LIMIT (x)\nint b = LIMIT;\n#define TWO(a) \\\n  LIMIT\n";
    let one = contracts(
        "[[cite]]\nat = 'q.h:2'\nsymbol = 'LIMIT'\nreason = 'r'\n\
         [[cite]]\nat = 'q.h:4-5'\nsymbol = 'TWO'\nreason = 'r'",
    );
    let at = |text: &str| tree(text, METAL, HOST);
    let found = |pin: &str, text: &str| {
        let verdicts = check(&one, &at(pin), &at(text), "new").expect("memory is read");
        verdicts.into_iter().map(|v| (v.status.as_str(), v.moved_to)).collect::<Vec<_>>()
    };
    let held = |place: Option<&str>| ("held", place.map(str::to_owned));
    for (to, place, two) in [
        ("#define LIMIT (x) // why", None, None),
        ("#define  LIMIT \\\n  (x)", None, Some("q.h:5-6")),
        ("int c;\n# define LIMIT /* why */ (x)", Some("q.h:3"), Some("q.h:5-6")),
    ] {
        let text = header.replace("#define LIMIT (x)", to);
        assert_eq!(found(header, &text), [held(place), held(two)], "{text}");
    }
    let text = header.replace("TWO(a) \\\n", "TWO(a)  \\\n").replace("int b", "\nint c,\n b");
    assert_eq!(found(header, &text), [held(None), held(Some("q.h:6-7"))]);
    // It is given something now, or is something else.
    for to in ["LIMIT(x)", "LIMIT (y)"] {
        let text = header.replace("LIMIT (x)", to);
        assert_eq!(found(header, &text)[0].0, "changed", "{text}");
    }
    // Of several it is the one between the same lines.
    let twice = format!("{header}#undef LIMIT\n#define LIMIT (x)\n");
    let text = twice.replacen("(x)", "(x) // why", 1);
    assert_eq!(found(&twice, &text)[0], held(None));
    let text = text.replace("int a;", "int c;").replace("int b", "int d");
    assert_eq!(found(&twice, &text)[0].0, "broken");
}

#[test]
fn a_citation_of_a_macro_that_is_undefined_says_so() {
    let header = "int a;\n#define LIMIT 4\nint b;\n";
    let one = contracts("[[cite]]\nat = 'q.h:2'\nsymbol = 'LIMIT'\nreason = 'r'");
    let undefined = "`LIMIT` is defined no more, line 2 undefines it";
    for (to, status, what) in [
        ("#undef LIMIT\n", Status::Broken, undefined.to_owned()),
        (
            "#undef LIMIT\nconstexpr int LIMIT = 4;\n",
            Status::Changed,
            format!("{undefined}; it stands on line 3 all the same"),
        ),
        (
            "#undef LIMIT\nint c = LIMIT;\nint d = LIMIT;\n",
            Status::Broken,
            format!("{undefined}; it stands on lines 3, 4 all the same"),
        ),
        (
            "#undef LIMIT\n#define LIMIT 5\n",
            Status::Changed,
            "the cited line changed; `LIMIT` is defined on line 3".to_owned(),
        ),
    ] {
        let text = header.replace("#define LIMIT 4\n", to);
        let verdicts = check(&one, &tree(header, METAL, HOST), &tree(&text, METAL, HOST), "new");
        let found = verdicts.expect("memory is read").swap_remove(0);
        assert_eq!((found.status, found.what), (status, what), "{to}");
    }
}

#[test]
fn a_citation_that_is_wrong_at_the_pin_says_so() {
    for (at, symbol, what) in [
        ("q.h:1", "qmv_impl", "at the pin, `qmv_impl` is at 2-10"),
        ("q.h:4", "SIMD_SIZE", "at the pin, `SIMD_SIZE` is not on this line"),
        ("q.h:99", "qmv_impl", "at the pin, the file has 14 lines"),
        ("none.h:1", "qmv_impl", "at the pin, there is no `none.h`"),
    ] {
        let one = contracts(&format!("[[cite]]\nat = '{at}'\nsymbol = '{symbol}'\nreason = 'r'"));
        let verdicts = check(&one, &pin(), &pin(), "pin").expect("memory is read");
        assert_eq!((verdicts[0].status, verdicts[0].what.as_str()), (Status::Broken, what));
    }
}

#[test]
fn an_acknowledged_change_is_accepted_for_its_target_alone() {
    let mut one = all();
    one.watch[0]
        .acknowledged
        .push(Acknowledgement { target: "new".into(), reason: "the twin was changed too".into() });
    let changed = tree(&HEADER.replace("y[0] = sum", "y[0] = sum + 1"), METAL, HOST);
    let at = |id: &str| check(&one, &pin(), &changed, id).expect("memory is read")[0].clone();
    assert_eq!(at("new").status, Status::Acknowledged);
    assert_eq!(at("new").acknowledged.as_deref(), Some("the twin was changed too"));
    assert_eq!(at("newer").status, Status::Changed);
}

#[test]
fn a_renamed_file_is_followed() {
    let mut moved = pin();
    let file = moved.0.remove(&TreePath::new("q.h").expect("plain")).expect("it is there");
    moved.0.insert(TreePath::new("sub/q2.h").expect("plain"), file);
    let verdicts = check(&all(), &pin(), &moved, "new").expect("memory is read");
    assert_eq!(verdicts[0].status, Status::Held);
    assert_eq!(verdicts[0].what, "the same text; the file is `sub/q2.h` now");
    assert_eq!(verdicts[4].moved_to.as_deref(), Some("sub/q2.h:5-7"));
}

#[test]
fn removed_lines_must_be_declared() {
    let patch = parse(
        b"--- a/q.h\n+++ b/q.h\n@@ -3,4 +3,3 @@\n METAL_FUNC void qmv_impl(device T* y, int n) {\n\
          -  T sum = 0;\n-  for (int i = 0; i < n; i++) {\n+  for (;;) {\n     sum += y[i]; // accumulate\n",
    )
    .expect("a patch");
    let of = |removes: &str| {
        let note =
            format!("[[note]]\nentry = 'e'\nfile = 'q.h'\nremoves = {removes}\nreason = 'r'");
        check_notes(&contracts(&note).note, &[("e", &patch)], 1)
    };
    let held = of("['T sum = 0;', 'for (int i = 0; i < n; i++) {']");
    assert_eq!((held.len(), held[0].status), (1, Status::Held));
    assert!(of("['T sum = 0;']")[0].what.contains("is an upstream fix undone?"));
    assert!(of("['T sum = 0;', 'for (int i = 0; i < n; i++) {', 'x']")[0].what.contains("`x`"));
    let none = check_notes(&[], &[("e", &patch)], 1);
    assert_eq!((none[0].status, none[0].name.as_str()), (Status::Broken, "e: q.h"));
    let stranger = contracts("[[note]]\nentry='f'\nfile='q.h'\nremoves=[]\nreason='r'").note;
    assert_eq!(check_notes(&stranger, &[], 1)[0].what, "the series has no patch entry `f`");
}

#[test]
fn stored_forms_are_strict_and_come_back() {
    let all = all();
    for text in [
        "[[watch]]\nfile='q.h'\nreason='r'\nlines=3",
        "[[cite]]\nat='q.h'\nsymbol='s'\nreason='r'",
        "[[cite]]\nat='q.h:7-3'\nsymbol='s'\nreason='r'",
        "[[cite]]\nat='../q.h:7'\nsymbol='s'\nreason='r'",
        "[[kernel]]\nname='k'\nreason='r'",
    ] {
        assert!(toml::from_str::<Stored>(text).is_err(), "{text}");
    }
    let cite = toml::to_string(&all.cite[0]).expect("it is stored");
    assert_eq!(toml::from_str::<Cite>(&cite).expect("it comes back"), all.cite[0]);
}
