use super::*;
use crate::merge::lines;
use crate::patch::{Body, parse};

mod around;
mod lists;
mod openings;
mod plain;
mod rows;
mod scopes;
mod twins;

fn hunks(body: &str) -> Vec<Hunk> {
    let patch = parse(format!("--- a/f\n+++ b/f\n{body}").as_bytes()).expect("a patch");
    match patch.files.into_iter().next().expect("a file").body {
        Body::Text(hunks) => hunks,
        _ => panic!("text"),
    }
}

fn alone(body: &str, text: &str) -> Vec<Place> {
    place_alone(&hunks(body), &lines(text.as_bytes()), Text::Unknown)
}

fn mapped(body: &str, base: &str, text: &str) -> Vec<Place> {
    in_language(Language::Other, body, base, text)
}

/// As [`mapped`], of texts in a language that a name tells.
fn in_language(language: Language, body: &str, base: &str, text: &str) -> Vec<Place> {
    place_mapped(&hunks(body), &lines(base.as_bytes()), &lines(text.as_bytes()), language)
}

fn classes(places: &[Place]) -> Vec<&'static str> {
    places
        .iter()
        .map(|p| match p {
            Ok(placed) => placed.class.as_str(),
            Err(unplaced) => unplaced.class.as_str(),
        })
        .collect()
}

const INSERT: &str = "@@ -2,4 +2,5 @@\n b\n c\n+new\n d\n e\n";
const ABCDEF: &str = "a\nb\nc\nd\ne\nf\n";

#[test]
fn a_hunk_follows_its_lines() {
    let text = "0\n1\na\nb\nc\nd\ne\nf\n";
    let places = mapped(INSERT, ABCDEF, text);
    assert_eq!(classes(&places), ["moved"]);
    let placed = places[0].as_ref().expect("placed");
    assert_eq!((placed.site.clone(), placed.nearby.is_none()), (3..7, true));
    assert_eq!(placed.edits[0].range, 5..5);
}

#[test]
fn a_line_without_context_proves_its_place_only_where_it_stands_alone() {
    let body = "@@ -3 +3 @@\n-c\n+C\n";
    for (text, class) in [
        (ABCDEF, "exact"),
        ("a\nb\nc\nd\nc\n", "ambiguous"),
        ("0\na\nb\nc\n", "ambiguous"),
        ("a\nb\n", "conflict"),
        ("a\nb\nc\r\n", "line-endings"),
    ] {
        assert_eq!(classes(&alone(body, text)), [class], "{text:?}");
    }
    let text = lines(b"a\nc\nc\n");
    let based = place_alone(&hunks(body), &text, Text::Base);
    assert_eq!(classes(&based), ["exact"], "the stated line of its own text");
    assert_eq!(based[0].as_ref().expect("placed").rivals, [1]);
}

#[test]
fn outer_context_may_change_and_is_shown() {
    let places = mapped(INSERT, ABCDEF, "a\nB\nc\nd\ne\nf\n");
    assert_eq!(classes(&places), ["moved"]);
    let nearby = places[0].as_ref().expect("placed").nearby.as_ref().expect("changed nearby");
    assert_eq!(nearby.diff, ["-b", "+B", " c", " d", " e"]);
}

#[test]
fn a_changed_line_beside_the_change_conflicts() {
    for text in ["a\nb\nC\nd\ne\nf\n", "a\nb\nc\nx\nd\ne\nf\n", "a\nb\nc\ne\nf\n"] {
        assert_eq!(classes(&mapped(INSERT, ABCDEF, text)), ["conflict"], "{text:?}");
    }
}

#[test]
fn a_change_that_is_there_has_landed() {
    let places = mapped(INSERT, ABCDEF, "0\na\nb\nc\nnew\nd\ne\nf\n");
    assert_eq!(classes(&places), ["landed"]);
    assert!(places[0].as_ref().expect("placed").edits.is_empty());
}

/// Among lines that repeat a diff has the removed one kept, and another changed.
#[test]
fn a_text_that_is_what_the_patch_makes_has_it_all() {
    let lines = |text: &str| text.chars().map(|c| format!("{c}\n")).collect::<String>();
    let (base, made) = (lines("aaabaaxxxaa"), lines("aabaaxxaaa"));
    let patch = "@@ -2,3 +2,2 @@\n a\n-a\n b\n@@ -6,3 +5,2 @@\n a\n-x\n x\n\
                 @@ -10,2 +8,3 @@\n a\n+a\n a\n";
    assert_eq!(classes(&mapped(patch, &base, &made)), ["landed"; 3]);
    let renames = "@@ -1,4 +1,4 @@\n-int old() {\n+int made() {\n   a;\n   b;\n   c;\n\
                   @@ -4,4 +4,5 @@\n   c;\n   d;\n+  new;\n   e;\n   f;\n";
    let body = |name: &str, new: &str| {
        format!("int {name}() {{\n  a;\n  b;\n  c;\n  d;\n{new}  e;\n  f;\n  g;\n  h;\n}}\n")
    };
    let base = body("old", "");
    let done = body("made", "  new;\n");
    assert_eq!(classes(&mapped(renames, &base, &done)), ["landed", "landed"]);
    let again = done.replace("made", "third");
    assert_eq!(classes(&mapped(renames, &base, &again)), ["conflict", "conflict"]);
    assert_eq!(classes(&mapped(renames, &base, &body("made", ""))), ["landed", "conflict"]);
}

#[test]
fn a_change_that_is_there_in_part_conflicts() {
    let body = "@@ -1,6 +1,6 @@\n a\n-b\n+B\n c\n d\n-e\n+E\n f\n";
    assert_eq!(classes(&mapped(body, ABCDEF, "a\nB\nc\nd\ne\nf\n")), ["conflict"]);
    assert_eq!(classes(&mapped(body, ABCDEF, "a\nB\nc\nd\nE\nf\n")), ["landed"]);
}

#[test]
fn lines_that_now_stand_in_another_function_conflict() {
    // Upstream took `f`'s body away; the only lines like it are `g`'s, whose
    // own heading they had before.
    let base = "int f() {\n  x;\n  lock;\n  go;\n}\nint g() {\n  y;\n  stop;\n}\n";
    let text = "int f() {\n}\nint g() {\n  y;\n  lock;\n  go;\n  stop;\n}\n";
    let body = "@@ -2,3 +2,4 @@\n   x;\n   lock;\n+  new;\n   go;\n";
    assert_eq!(classes(&mapped(body, base, text)), ["conflict"]);
}

#[test]
fn a_changed_signature_is_changed_nearby() {
    let base = "int f() {\n  a;\n  b;\n  c;\n  d;\n}\n";
    let text = "int f(int x) {\n  a;\n  b;\n  c;\n  d;\n}\n";
    let body = "@@ -2,4 +2,5 @@\n   a;\n   b;\n+  new;\n   c;\n   d;\n";
    let places = mapped(body, base, text);
    assert_eq!(classes(&places), ["moved"]);
    let nearby = places[0].as_ref().expect("placed").nearby.as_ref().expect("changed nearby");
    assert_eq!(nearby.diff[..3], ["@@ -1,4 +1,4 @@", "-int f() {", "+int f(int x) {"]);
}

const PYTHON: &str = "import x\n\n\nclass A(B):\n    \"\"\"It does.\n    \"\"\"\n\n    def f(self, q):\n        a = \
                      q\n        b = {\n            1: a\n        }\n        c(b)\n        return b\n\n    \
                      def g(self):\n        v = 1\n        w = 2\n        x = 3\n        return x\n";

#[test]
fn a_method_by_indentation_has_to_be_the_same() {
    let inner = "@@ -11,4 +11,5 @@ class A(B):\n             1: a\n         }\n+        b = b\n         c(b)\n         return b\n";
    let last = "@@ -17,4 +17,5 @@ class A(B):\n         v = 1\n         w = 2\n         x = 3\n         return x\n+        y = 4\n";
    let after = "@@ -13,4 +13,7 @@ class A(B):\n         c(b)\n         return b\n \n+    def new(self):\n+        pass\n+\n     def g(self):\n";
    let swapped =
        PYTHON.replace("def f(", "def h(").replace("def g(", "def f(").replace("def h(", "def g(");
    for (body, text, class, why) in [
        (inner, PYTHON.replace("def f(", "def _old("), "conflict", "its function `A.f` is gone"),
        (inner, PYTHON.replace("class A(", "class Z("), "conflict", "its function `A.f` is gone"),
        (inner, swapped.clone(), "conflict", "in `A.g`, and it was made for `A.f`"),
        (last, swapped, "conflict", "in `A.f`, and it was made for `A.g`"),
        (last, PYTHON.replace("def g(", "def k("), "conflict", "its function `A.g` is gone"),
        // It is in the class, and in none of its methods.
        (after, PYTHON.replace("def f(", "def _old("), "exact", ""),
        (inner, PYTHON.replace("def f(self, q)", "def f(self, q, r)"), "exact", ""),
        (last, PYTHON.replace("class A(B)", "class A(C)"), "moved", ""),
        (inner, PYTHON.replace("import x\n", "import x\nimport y\n"), "moved", ""),
    ] {
        let places = mapped(body, PYTHON, &text);
        assert_eq!(classes(&places), [class], "{text}");
        if let Err(unplaced) = &places[0] {
            assert!(unplaced.why.contains(why), "{}", unplaced.why);
        }
    }
    let text = PYTHON.replace("def f(self, q)", "def f(self, q, r)");
    let places = mapped(inner, PYTHON, &text);
    let nearby = places[0].as_ref().expect("placed").nearby.as_ref().expect("changed nearby");
    assert!(nearby.diff.contains(&"-    def f(self, q):".to_owned()), "{:?}", nearby.diff);
}

#[test]
fn lines_inside_a_block_are_in_it_however_little_they_are_indented() {
    let method = |name: &str| {
        format!(
            "def {name}(\n    a,\n    b,\n) -> c:\n    x = 1  # \\\n    s = \"\"\"\nu\nv\nw\n\"\"\"\n# o\n    \
             return s\n\n\n"
        )
    };
    let base = method("f") + &method("g");
    for body in [
        "@@ -3,2 +3,3 @@\n     b,\n ) -> c:\n+    y = 1\n",
        "@@ -3,3 +3,3 @@\n     b,\n-) -> c:\n+) -> d:\n     x = 1  # \\\n",
        "@@ -7,3 +7,3 @@\n u\n-v\n+V\n w\n",
        "@@ -7,2 +7,3 @@\n u\n+V\n v\n",
        "@@ -11,2 +11,3 @@\n # o\n+# p\n     return s\n",
    ] {
        for text in [method("h") + &method("g"), method("g") + &method("f")] {
            assert_eq!(classes(&mapped(body, &base, &text)), ["conflict"], "{body}{text}");
        }
    }
}

#[test]
fn a_change_within_a_head_belongs_to_its_function() {
    let kernel = |name: &str| {
        format!(
            "template <\n    class T,\n    int n>\n[[kernel]] void {name}(\n    device T* w,\n    int x,\n    uint3 \
             tid) {{\n  run(w, x);\n}}\n\n"
        )
    };
    let base = kernel("f") + &kernel("g");
    for body in [
        "@@ -1,2 +1,3 @@\n template <\n+    int k,\n     class T,\n",
        "@@ -5,2 +5,3 @@\n     device T* w,\n+    int k,\n     int x,\n",
        "@@ -6,3 +6,3 @@\n     int x,\n-    uint3 tid) {\n+    uint3 t) {\n   run(w, x);\n",
    ] {
        let text = kernel("f") + &kernel("g").replace("run", "go");
        assert_eq!(classes(&mapped(body, &base, &text)), ["exact"], "{body}");
        for text in [kernel("h") + &kernel("g"), kernel("g") + &kernel("f")] {
            assert_eq!(classes(&mapped(body, &base, &text)), ["conflict"], "{body}{text}");
        }
    }
}

/// The line that the report of the only hunk, which conflicts, gives as a hint.
fn hint(body: &str, base: &str, text: &str) -> Option<usize> {
    let places = mapped(body, base, text);
    let unplaced = places[0].as_ref().expect_err("a conflict");
    unplaced.conflict(&hunks(body)[0], &lines(text.as_bytes())).hint_line
}

#[test]
fn a_hint_is_where_the_lines_went() {
    let own = "  a();\n  b();\n  c();\n  d();\n}\n\nvoid g() {\n";
    let far: String = (0..20).map(|i| format!("// {i}\n")).collect();
    let base = format!(
        "void k() {{\n  b();\n  c();\n  d();\n}}\n\nint h() {{\n}}\n{far}void f() {{\n{own}}}\n"
    );
    let body = "@@ -31,6 +31,7 @@\n   b();\n   c();\n   d();\n+  new();\n }\n \n void g() {\n";
    let (line, other) = (31, "  d();\n}\n\nvoid g");
    assert_eq!(lines(base.as_bytes())[line - 1], b"  b();\n");
    // One line between; five of the six stand together elsewhere.
    let between = base.replace(other, "  d();\n#endif\n}\n\nvoid g");
    assert_eq!(hint(body, &base, &between), Some(line));
    // Indented anew.
    let deep = base.replace("  ", "    ");
    assert_eq!(hint(body, &base, &deep), Some(line));
    // Gone: half of it elsewhere is not most of it.
    let gone = base.replace(own, "}\n").replace("void k() {\n  b();\n  c();\n  d();\n}\n", "");
    assert_eq!(hint(body, &base, &gone), None);
}

#[test]
fn crlf_is_named_as_the_cause() {
    let crlf = ABCDEF.replace('\n', "\r\n");
    assert_eq!(classes(&mapped(INSERT, ABCDEF, &crlf)), ["line-endings"]);
    assert_eq!(classes(&alone(INSERT, &crlf)), ["line-endings"]);
}

#[test]
fn alone_the_stated_line_counts_then_the_only_place() {
    assert_eq!(classes(&alone(INSERT, ABCDEF)), ["exact"]);
    assert_eq!(classes(&alone(INSERT, &format!("0\n{ABCDEF}"))), ["offset"]);
    assert_eq!(classes(&alone(INSERT, &format!("0\n{ABCDEF}{ABCDEF}"))), ["ambiguous"]);
    assert_eq!(classes(&alone(INSERT, "a\nb\n")), ["conflict"]);
}

#[test]
fn a_neighbour_that_moved_outweighs_a_lookalike_at_the_stated_line() {
    // The pair stands at its stated line and four lines further; the second
    // hunk has one place only, four lines further.
    let text = "p\nq\n-\n-\np\nq\n-\n-\nend\nx\ny\n";
    let body = "@@ -1,2 +1,3 @@\n p\n+new\n q\n@@ -5,3 +6,4 @@\n end\n x\n+new\n y\n";
    assert_eq!(classes(&alone(body, text)), ["ambiguous", "offset"]);
}

#[test]
fn shorter_context_claims_the_end_of_the_file() {
    let body = "@@ -2,2 +2,3 @@\n b\n c\n+new\n";
    assert_eq!(classes(&alone(body, "a\nb\nc\n")), ["exact"]);
    assert_eq!(classes(&alone(body, "a\nb\nc\nd\n")), ["conflict"]);
    // With the text it was made for there is nothing to claim.
    assert_eq!(classes(&mapped(body, "a\nb\nc\nd\n", "a\nb\nc\nd\n")), ["exact"]);
}

#[test]
fn no_context_needs_a_base() {
    let body = "@@ -2,0 +3 @@\n+new\n";
    assert_eq!(classes(&alone(body, ABCDEF)), ["ambiguous"]);
    assert_eq!(classes(&mapped(body, ABCDEF, ABCDEF)), ["exact"]);
    let places = mapped(body, ABCDEF, &format!("0\n{ABCDEF}"));
    assert_eq!(classes(&places), ["moved"]);
    assert_eq!(places[0].as_ref().expect("placed").edits[0].range, 3..3);
}

#[test]
fn hunks_keep_their_order() {
    let text = "x\ny\n1\n2\n3\n4\n5\n6\na\nb\n";
    let body = "@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -9,2 +10,3 @@\n x\n+new\n y\n";
    assert!(classes(&alone(body, text)).contains(&"conflict"));
}

#[test]
fn a_second_copy_that_upstream_put_in_leaves_the_place_open() {
    let old = "int g() {\n  one();\n  two();\n  three();\n  four();\n}\n";
    let insert = "@@ -2,4 +2,5 @@\n   one();\n   two();\n+  new();\n   three();\n   four();\n";
    assert_eq!(classes(&mapped(insert, old, &format!("// More.\n{old}"))), ["moved"]);
    // Which of the two is the old one depends on the compiler's settings.
    for twice in [format!("#ifdef NEW\n{old}#else\n{old}#endif\n"), format!("{old}\n{old}")] {
        assert_eq!(classes(&mapped(insert, old, &twice)), ["ambiguous"], "{twice}");
    }
    // Under another name it is no copy; two that were there before are none put in.
    let renamed = format!("{}{old}", old.replace("g()", "old_g()"));
    assert_eq!(classes(&mapped(insert, old, &renamed)), ["moved"]);
    let both = format!("{old}{old}");
    assert_eq!(classes(&mapped(insert, &both, &format!("{both}int h();\n"))), ["exact"]);
}

fn why(places: &[Place]) -> &str {
    match &places[0] {
        Err(unplaced) => &unplaced.why,
        Ok(placed) => panic!("{placed:?}"),
    }
}

const KERNEL: &str = "\
template <typename T>
[[kernel]] void first(device T* x) {
  one();
  two();
  three();
  four();
}
";
const IN_KERNEL: &str = "@@ -3,4 +3,5 @@ template <typename T>\n   one();\n   two();\n+  new();\n   three();\n   four();\n";

#[test]
fn a_function_of_another_name_is_another_function() {
    let renamed = KERNEL.replace("first", "second");
    let gone = "its function `first` is gone: upstream took it away or gave it another name";
    let places = mapped(IN_KERNEL, KERNEL, &renamed);
    assert_eq!(classes(&places), ["conflict"]);
    assert_eq!(why(&places), format!("{gone}; its lines stand in `second`"));
    // Under the heading that both have it would even be `exact`.
    let both = format!("{}\n{KERNEL}", KERNEL.replace("first", "other").replace("one()", "0"));
    let body = IN_KERNEL.replace("-3,4 +3,5", "-11,4 +11,5");
    let taken = both.replace("first", "second");
    assert_eq!(classes(&mapped(&body, &both, &taken)), ["conflict"]);
    // The same where the change stands there already.
    let landed = renamed.replace("  two();\n", "  two();\n  new();\n");
    assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &landed)), ["conflict"]);
    let landed = KERNEL.replace("  two();\n", "  two();\n  new();\n");
    assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &landed)), ["landed"]);
    // Split: the head stays, the lines go to a new function.
    let split = KERNEL.replace("  one();\n", "}\nvoid rest() {\n  one();\n");
    let places = mapped(IN_KERNEL, KERNEL, &split);
    assert!(why(&places).contains("in `rest`, and it was made for `first`"), "{places:?}");
    // Its lines changed, and its function is gone besides.
    let both = renamed.replace("two", "deux");
    assert_eq!(why(&mapped(IN_KERNEL, KERNEL, &both)), gone);
}

#[test]
fn a_method_of_another_class_is_another_function() {
    let base =
        "struct A {\n  int f() {\n    one();\n    two();\n    three();\n    four();\n  }\n};\n";
    let body = "@@ -3,4 +3,5 @@ struct A {\n     one();\n     two();\n+    new();\n     three();\n     four();\n";
    assert_eq!(classes(&mapped(body, base, &format!("\n{base}"))), ["moved"]);
    assert_eq!(classes(&mapped(body, base, &base.replace("A", "B"))), ["conflict"]);
    let base = base.replace("int f() {", "int a;").replace("();", ";").replace("  }\n", "");
    let body = body.replace("();", ";");
    assert_eq!(classes(&mapped(&body, &base, &base.replace("A", "B"))), ["conflict"], "a member");
}

#[test]
fn overloads_are_told_apart_by_their_heads() {
    let two = format!("{}{}", KERNEL.replace("T* x", "T* x, int n"), KERNEL.replace("one", "uno"));
    assert_eq!(classes(&mapped(IN_KERNEL, &two, &two.replace("int n", "long n"))), ["exact"]);
    let swapped = format!("{}{}", KERNEL, KERNEL.replace("one", "uno"));
    assert_eq!(classes(&mapped(IN_KERNEL, &two, &swapped)), ["conflict"]);
}

const MACRO: &str = "#define make(T) \\\n  one(T) \\\n  two(T) \\\n  three(T) \\\n  four(T)\n";
const IN_MACRO: &str =
    "@@ -2,4 +2,5 @@\n   one(T) \\\n   two(T) \\\n+  new(T) \\\n   three(T) \\\n   four(T)\n";

#[test]
fn a_macro_counts_as_a_function() {
    assert_eq!(classes(&mapped(IN_MACRO, MACRO, &format!("\n{MACRO}"))), ["moved"]);
    let renamed = MACRO.replace("make", "make_all");
    assert!(why(&mapped(IN_MACRO, MACRO, &renamed)).contains("`#define make` is gone"));
}

#[test]
fn the_brace_alone_does_not_name_a_function() {
    // The lines at the brace are kept; those that name the function are not.
    for head in [
        "A::first(int a)\n    : a_{a}\n    , b_{a}\n{\n",
        "void first(\n    A a = {\n        1,\n    }\n    , int b) {\n",
        "void first(\n#if A\n    int a,\n#endif\n    int b) {\n",
    ] {
        let base = format!("{head}  one();\n  two();\n  three();\n  four();\n}}\n");
        let line = head.lines().count() + 1;
        let body = format!(
            "@@ -{line},4 +{line},5 @@\n   one();\n   two();\n+  new();\n   three();\n   four();\n"
        );
        assert_eq!(classes(&mapped(&body, &base, &format!("\n{base}"))), ["moved"]);
        let places = mapped(&body, &base, &base.replace("first", "second"));
        assert_eq!(classes(&places), ["conflict"], "{head}");
    }
}

#[test]
fn lines_that_upstream_switched_off_are_a_conflict() {
    let off = format!("#if 0\n{KERNEL}#endif\n");
    let places = mapped(IN_KERNEL, KERNEL, &off);
    assert_eq!(why(&places), "upstream switched its lines off: `#if 0` at line 1");
    let body = IN_KERNEL.replace("-3,4 +3,5", "-4,4 +4,5");
    assert_eq!(classes(&mapped(&body, &off, &format!("\n{off}"))), ["moved"], "it was off before");
    for on in [off.replace("if 0", "if A"), off.replace("if 0", "if 1")] {
        assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &on)), ["moved"], "{on}");
    }
    let arm = off.replace("#if 0\n", "#if 0\nint a;\n#else\n");
    assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &arm)), ["moved"]);
}

#[test]
fn a_second_copy_of_a_macro_is_as_good_as_the_first() {
    let twice = format!("#if A\n{MACRO}#else\n{MACRO}#endif\n");
    assert_eq!(classes(&mapped(IN_MACRO, MACRO, &twice)), ["ambiguous"]);
}

#[test]
fn where_no_function_can_be_read_the_heading_names_it() {
    let base = "function first(x):\n    one\n    two\n    three\n    four\n";
    let body =
        "@@ -2,4 +2,5 @@ function first(x):\n     one\n     two\n+    new\n     three\n     four\n";
    assert_eq!(classes(&mapped(body, base, &base.replace("(x)", "(x, y)"))), ["moved"]);
    let places = mapped(body, base, &base.replace("first", "second"));
    assert!(why(&places).contains("under `second`, and it was made for `first`"), "{places:?}");
}

#[test]
fn a_head_that_no_function_was_read_from_counts() {
    // The second is one that the reader of functions does not know.
    let macros =
        "int f() {\n  return 1;\n}\n\nTEST_OF(first)\n  one\n  two\n  three\n  four\nEND\n";
    let body = "@@ -6,4 +6,5 @@\n   one\n   two\n+  new\n   three\n   four\n";
    assert_eq!(classes(&mapped(body, macros, &macros.replace("return 1", "return 2"))), ["exact"]);
    let other = macros.replace("TEST_OF(first)", "BENCH(first)");
    assert!(why(&mapped(body, macros, &other)).contains("under `BENCH`"));
    // A declaration before it is nobody's head.
    let base = "int f() {\n  return 1;\n}\nstruct A;\nint a;\nint b;\nint c;\nint d;\n";
    let body = "@@ -5,4 +5,5 @@\n int a;\n int b;\n+int n;\n int c;\n int d;\n";
    let more = base.replace("struct A;", "struct B;");
    assert_eq!(classes(&mapped(body, base, &more)), ["exact"]);
}

#[test]
fn a_place_outside_of_any_function_stays_outside() {
    let base = format!("{KERNEL}\nint a;\nint b;\nint c;\nint d;\n");
    let body = "@@ -9,4 +9,5 @@\n int a;\n int b;\n+int n;\n int c;\n int d;\n";
    // The function before it may have another name.
    assert_eq!(classes(&mapped(body, &base, &base.replace("first", "second"))), ["exact"]);
    let wrapped = base.replace("int a;", "void f() {\nint a;") + "}\n";
    let places = mapped(body, &base, &wrapped);
    assert!(why(&places).contains("in `f`, and it was made for a place outside"), "{places:?}");
}

#[test]
fn an_opener_or_closer_that_comes_before_it_counts() {
    let base = "struct A {\n  int g();\n  int f() {\n    one();\n    two();\n    three();\n    four();\n  }\n};\n";
    let body =
        "@@ -4,4 +4,5 @@\n     one();\n     two();\n+    new();\n     three();\n     four();\n";
    for (comes, class) in [
        ("  int h();\n", "moved"),
        ("};\n\nstruct B {\n", "conflict"),
        ("  struct B {\n", "conflict"),
        ("  /* off\n", "conflict"),
    ] {
        let text = base.replace("  int f()", &format!("{comes}  int f()"));
        let text = match comes {
            "  struct B {\n" => text.replace("  }\n};", "  }\n  };\n};"),
            "  /* off\n" => text.replace("  }\n};", "  }\n  on */\n};"),
            _ => text,
        };
        assert_eq!(classes(&mapped(body, base, &text)), [class], "{comes}");
    }
    // No function in the base, and one around the lines now.
    let base = "int a;\nint b;\nint c;\nint d;\n";
    let body = "@@ -1,4 +1,5 @@\n int a;\n int b;\n+int n;\n int c;\n int d;\n";
    let places = mapped(body, base, &format!("void init() {{\n{base}}}\n"));
    assert_eq!(classes(&places), ["conflict"]);
}

#[test]
fn a_second_copy_of_its_function_leaves_it_open() {
    let twice = format!("#ifdef Q\n{KERNEL}#else\n{KERNEL}#endif\n");
    let first = "@@ -3,2 +3,3 @@\n   one();\n+  new();\n   two();\n";
    let last = "@@ -5,2 +5,3 @@\n   three();\n+  new();\n   four();\n";
    for body in [first, IN_KERNEL, last] {
        assert_eq!(classes(&mapped(body, KERNEL, &format!("\n{KERNEL}"))), ["moved"], "{body}");
        assert_eq!(classes(&mapped(body, KERNEL, &twice)), ["ambiguous"], "{body}");
    }
}

#[test]
fn arms_with_one_head_are_told_apart_by_their_order() {
    let other = KERNEL.replace("one", "uno").replace("two", "due");
    let arms = |a: &str, b: &str| format!("#ifdef Q\n{a}#else\n{b}#endif\n");
    let base = arms(KERNEL, &other);
    let body = "@@ -4,4 +4,5 @@\n   one();\n   two();\n+  new();\n   three();\n   four();\n";
    assert_eq!(classes(&mapped(body, &base, &format!("\n{base}"))), ["moved"]);
    assert_eq!(classes(&mapped(body, &base, &arms(&other, KERNEL))), ["conflict"]);
}

#[test]
fn a_change_further_out_in_the_function_is_changed_nearby() {
    let base = KERNEL.replace("  four();\n", "  four();\n  five();\n  six();\n  seven();\n");
    let text = base.replace("seven", "sept");
    let places = mapped(IN_KERNEL, &base, &text);
    assert_eq!(classes(&places), ["exact"], "its own lines and its place are the same");
    let nearby = places[0].as_ref().expect("placed").nearby.as_ref().expect("changed nearby");
    let shown = ["@@ -6,5 +6,5 @@", "   four();", "   five();", "   six();"];
    assert_eq!((nearby.line, &nearby.diff[..4]), (6, &shown.map(String::from)[..]));
    assert_eq!(nearby.diff[4..6], ["-  seven();", "+  sept();"]);
    // In another function it is nobody's business.
    let base = format!("{KERNEL}{}", KERNEL.replace("first", "second").replace("one", "uno"));
    let places = mapped(IN_KERNEL, &base, &base.replace("uno", "eins"));
    assert!(places[0].as_ref().expect("placed").nearby.is_none());
}

#[test]
fn a_copy_in_a_function_of_another_name_leaves_the_place_known() {
    // Both have the heading `template <typename T>`.
    let second = KERNEL.replace("first", "second").replace("four();", "four();\n  five();");
    let text = format!("{KERNEL}{second}");
    assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &text)), ["exact"]);
    assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &format!("{KERNEL}{KERNEL}"))), ["ambiguous"]);
}
