//! Lines that stand in another function, class, block or arm than they were made for.

use super::*;

#[test]
fn a_declaration_stays_in_its_class_and_namespace() {
    let base = "#include <m>\nnamespace n {\n\n  template <>\n  struct A<int> {\n    one;\n    two;\n    \
                three;\n    four;\n  };\n\n  enum class E : int {\n    zero,\n  };\n}\n";
    let body = "@@ -6,4 +6,5 @@\n     one;\n     two;\n+    new;\n     three;\n     four;\n";
    let renamed = |from: &str, to: &str| base.replace(from, to);
    for (text, placed, why) in [
        (format!("\n{base}"), true, ""),
        (renamed("A<int>", "A<int> : B"), true, ""),
        (renamed("A<int>", "API A<int>"), true, ""),
        (renamed("A<int>", "B<int>"), false, "in `n::B<int>`, and it was made for `n::A<int>`"),
        (renamed("A<int>", "A<half>"), false, "in `n::A<half>`"),
        (renamed("n {", "m {"), false, "in `m::A<int>`"),
        (renamed("  struct A<int> {\n", ""), false, "in `n`, and it was made for `n::A<int>`"),
        // Under several names for one body the last counts, and no other.
        (
            renamed(
                "  struct A<int> {\n",
                "#if Q\n  struct C {\n#else\n  struct A<int> {\n#endif\n",
            ),
            true,
            "",
        ),
    ] {
        let places = mapped(body, base, &text);
        assert_eq!(places[0].is_ok(), placed, "{text}");
        if let Err(unplaced) = &places[0] {
            assert!(unplaced.why.contains(why), "{}", unplaced.why);
        }
    }
    let body = "@@ -12,3 +12,4 @@\n   enum class E : int {\n+    new,\n     zero,\n   };\n";
    assert_eq!(classes(&mapped(body, base, &renamed("A<int>", "B<int>"))), ["exact"]);
    let body = "@@ -13,2 +13,3 @@\n     zero,\n+    new,\n   };\n";
    assert_eq!(classes(&mapped(body, base, &renamed("E : int", "E"))), ["exact"]);
    assert_eq!(classes(&mapped(body, base, &renamed("E : int", "F : int"))), ["conflict"]);
    let base = "class A : B {\n  one;\n  two;\n  three;\n  four;\n};\n";
    let body = "@@ -2,4 +2,5 @@\n   one;\n   two;\n+  new;\n   three;\n   four;\n";
    for (to, class) in [("API A", "moved"), ("API C", "conflict")] {
        let places = mapped(body, base, &base.replace("A", to));
        assert_eq!(classes(&places), [class], "{places:?}");
    }
    let base = base.replace("class A", "DECL(x) class A");
    for (to, class) in [("A : C", "moved"), ("B : B", "conflict")] {
        let places = mapped(body, &base, &base.replace("A : B", to));
        assert_eq!(classes(&places), [class], "{places:?}");
    }
    // No namespace before, and one now.
    let base = "#include <m>\nint a;\nint b;\nint c;\nint d;\n";
    let body = "@@ -2,4 +2,5 @@\n int a;\n int b;\n+int n;\n int c;\n int d;\n";
    let places = mapped(body, base, &(base.replace("m>\n", "m>\nnamespace n {\n") + "}\n"));
    assert!(why(&places).contains("in `n`, and it was made for a place outside"), "{places:?}");
}

#[test]
fn overloads_with_other_heads_are_those_they_are_like() {
    let two = format!("{}{}", KERNEL, KERNEL.replace("one", "uno").replace("T* x", "T* x, int n"));
    for (first, second, placed) in [
        ("T* y", "T* y, int m", true),
        ("T* x, bool b", "T* x, int n, bool b", true),
        ("T* y, int n", "T* y", false),
        ("T* x, int n = 1", "U* x", false),
    ] {
        let text = two.replace("T* x, int n", second).replace("T* x)", &format!("{first})"));
        assert_eq!(mapped(IN_KERNEL, &two, &text)[0].is_ok(), placed, "{text}");
    }
}

#[test]
fn a_stub_beside_a_function_does_not_stand_for_it() {
    let stub = "template <typename T>\n[[kernel]] void first(device T* x) {\n  none();\n}\n";
    let before = format!("#if A\n{stub}#else\n{KERNEL}#endif\n");
    let after = format!("#ifndef A\n{KERNEL}#else\n{stub}#endif\n");
    let apart = format!("#ifndef A\n{KERNEL}#endif\n\n#if A\n{stub}#endif\n");
    for text in [&before, &after, &apart] {
        let places = mapped(IN_KERNEL, KERNEL, text);
        assert_eq!(classes(&places), ["moved"], "{places:?}");
        let line = text.lines().position(|l| l == "  two();").expect("it is there") + 1;
        let site = &places[0].as_ref().expect("it is placed").site;
        assert!(site.contains(&line), "{site:?} is at {line}");
        // And where the stub goes again.
        let body = IN_KERNEL.replace("-3,4 +3,5", &format!("-{0},4 +{0},5", line - 1));
        assert_eq!(classes(&mapped(&body, text, KERNEL)), ["moved"], "{text}");
        // Not where the stub is all that is left.
        assert!(mapped(&body, text, stub)[0].is_err(), "{text}");
    }
    // The other one has the lines too, or has most of the rest.
    let more = after.replace("  none();\n", "  zero();\n  two();\n  three();\n");
    assert_eq!(classes(&mapped(IN_KERNEL, KERNEL, &more)), ["ambiguous"]);
    let long = KERNEL.replace("  four();\n", "  four();\n  five();\n  six();\n  seven();\n");
    let split = |own: &str, rest: &str| {
        let head = "template <typename T>\n[[kernel]] void first(device T* x) {\n";
        format!("#if A\n{head}{own}}}\n#else\n{head}{rest}}}\n#endif\n")
    };
    let text = split("  two();\n  three();\n", "  four();\n  five();\n  six();\n  seven();\n");
    let body = "@@ -4,2 +4,3 @@\n   two();\n+  new();\n   three();\n";
    let places = mapped(body, &long, &text);
    assert_eq!(classes(&places), ["conflict"], "{places:?}");
    let expected = "in `first`, which was at line 1 and is at line 2, 8 now, and nothing says";
    assert!(why(&places).contains(expected), "{places:?}");
    // No more than half of them, whatever the diff took for the old one.
    let text = split(
        "  none();\n  two();\n  three();\n  four();\n  five();\n  seven();\n",
        "  one();\n  two();\n  four();\n  five();\n  six();\n",
    );
    assert_eq!(classes(&mapped(body, &long, &text)), ["conflict"], "{text}");
}

#[test]
fn attributes_are_no_names_of_functions_or_classes() {
    let base = KERNEL.replace("[[kernel]] void", "__global__ void __launch_bounds__(N)");
    for (to, class) in [("(T* y)", "moved"), ("2(T* x)", "conflict")] {
        let text = base.replace("(device T* x)", to);
        assert_eq!(classes(&mapped(IN_KERNEL, &base, &text)), [class], "{text}");
    }
    // Where no function can be read.
    let base = "__launch_bounds__(max(1, 2)) f(x):\n    one\n    two\n    three\n    four\n";
    let body = "@@ -2,4 +2,5 @@\n     one\n     two\n+    new\n     three\n     four\n";
    for (to, class) in [("f(y)", "moved"), ("g(x)", "conflict")] {
        let text = base.replace("f(x)", to);
        assert_eq!(classes(&mapped(body, base, &text)), [class], "{text}");
    }
    let base = "class A : B {\n  one;\n  two;\n  three;\n  four;\n};\n";
    let body = "@@ -2,4 +2,5 @@\n   one;\n   two;\n+  new;\n   three;\n   four;\n";
    for with in
        ["alignas(16)", "API(x)", "__attribute__((aligned(8)))", "[[deprecated(\"a: b\")]] API"]
    {
        for (name, class) in [("A", "moved"), ("A final", "moved"), ("C", "conflict")] {
            let text = base.replace('A', &format!("{with} {name}"));
            let places = mapped(body, base, &text);
            assert_eq!(classes(&places), [class], "{text} {places:?}");
        }
    }
}

#[test]
fn specialisations_are_functions_of_their_own() {
    let base =
        KERNEL.replace("typename T", "").replace("first", "first<int>").replace("T* x", "int* x");
    for (from, to, placed) in [
        ("int* x", "int* y", true),
        ("first<int>", "first<half>", false),
        ("first<int>", "second<int>", false),
    ] {
        assert_eq!(mapped(IN_KERNEL, &base, &base.replace(from, to))[0].is_ok(), placed, "{to}");
    }
    // A method of a class template keeps its class, whatever that is given.
    let base = KERNEL.replace("first", "A<T>::first");
    for (to, placed) in [("A<T, 2>::first", true), ("B<T>::first", false)] {
        let text = base.replace("A<T>::first", to);
        assert_eq!(mapped(IN_KERNEL, &base, &text)[0].is_ok(), placed, "{to}");
    }
}

#[test]
fn a_macro_that_heads_a_body_names_it_by_its_argument() {
    let base = KERNEL.replace("[[kernel]] void first(device T* x)", "MAKE(first, int a)");
    for (to, placed) in [("MAKE(first, int b)", true), ("MAKE(second, int a)", false)] {
        let text = base.replace("MAKE(first, int a)", to);
        assert_eq!(mapped(IN_KERNEL, &base, &text)[0].is_ok(), placed, "{to}");
    }
}

#[test]
fn a_lambda_or_a_local_class_of_another_name_is_another() {
    let lambda = "void f() {\n  auto first = [&](int a,\n                   int b) {\n    one();\n    two();\n    \
                  three();\n    four();\n  };\n  first(1);\n}\n";
    let method = "void f() {\n  struct A {\n    int first() {\n    one();\n    two();\n    three();\n    four();\n    \
                  }\n  };\n}\n";
    let given = "void f() {\n  m.def(\"first\", [&](int a) {\n\n    one();\n    two();\n    three();\n    four();\n  \
                 });\n  m.def(\"none\", [&](int a) {});\n  first(1);\n}\n";
    let body =
        "@@ -4,4 +4,5 @@\n     one();\n     two();\n+    new();\n     three();\n     four();\n";
    for (base, from, to, placed) in [
        (lambda, "void f() {\n", "int n;\nvoid f() {\n", true),
        (lambda, "auto first = [&](int a", "const F first = [=](long a", true),
        (lambda, "void f() {\n", "void f() {\n  if (x) {\n", true),
        (lambda, "auto first = [", "auto second = [", false),
        (lambda, "auto first = [&](int a,\n                   int b) {", "{", false),
        (lambda, "void f() {\n", "void f() {\n  auto g = [] {\n", false),
        (method, "first", "second", false),
        (method, "struct A", "struct B", false),
        (method, "struct A", "struct A : B", true),
        (method, "int first()", "long first(int a)", true),
        (method, "struct A", "struct API(x) A", true),
        (method, "struct A", "struct API(x) B", false),
        (given, "[&](int a", "nb::arg(), [=](long a", true),
        (given, "\"first\"", "\"second\"", false),
    ] {
        let text = base.replace(from, to);
        let opened = text.matches('{').count() - text.matches('}').count();
        let text =
            text.replace("  first(1);\n", &format!("  first(1);\n{}", "  }\n".repeat(opened)));
        let places = mapped(body, base, &text);
        assert_eq!(places[0].is_ok(), placed, "{text}");
    }
    // One that is no function's.
    let outer = lambda.replace("void f() {\n", "int n;\n").replace("  first(1);\n}\n", "");
    let renamed = outer.replace("auto first", "auto second");
    assert_eq!(classes(&mapped(body, &outer, &renamed)), ["conflict"]);
}

#[test]
fn the_other_arm_of_a_condition_is_another_place() {
    let lines = "  one();\n  two();\n  three();\n  four();\n";
    let arms = |condition: &str, first: &str, second: &str| {
        format!("void f() {{\n#{condition}\n{first}#else\n{second}#endif\n}}\n")
    };
    let base = arms("ifdef A", lines, "  other();\n");
    let body = "@@ -3,4 +3,5 @@\n   one();\n   two();\n+  new();\n   three();\n   four();\n";
    for (text, placed) in [
        (format!("\n{base}"), true),
        (arms("if defined(A)", lines, "  other();\n"), true),
        (arms("if B", lines, "  other();\n"), true),
        (arms("ifndef A", "  other();\n", lines), true),
        (arms("ifdef A", "  other();\n", lines), false),
        (arms("ifndef A", lines, "  other();\n"), false),
        (arms("if A\n  more();\n#elif B", lines, ""), false),
    ] {
        let places = mapped(body, &base, &text);
        assert_eq!(places[0].is_ok(), placed, "{text}");
        if !placed {
            let expected = "where `A` is not met, and it was made for where it is";
            assert!(why(&places).contains(expected), "{}", why(&places));
        }
    }
}

#[test]
fn alike_arms_are_told_apart_by_their_conditions_or_by_the_rest() {
    let lines = "  one();\n  two();\n  three();\n  four();\n";
    let arms = |condition: &str, first: &str, second: &str| {
        format!("void f() {{\n#{condition}\n{first}#else\n{second}#endif\n}}\n")
    };
    let (a, b) = (format!("{lines}  a();\n"), format!("{lines}  c();\n"));
    let plain = format!("void f() {{\n  zero();\n{lines}}}\n");
    let two = arms("if A", &a, &b);
    let body = "@@ -3,4 +3,5 @@\n   one();\n   two();\n+  new();\n   three();\n   four();\n";
    for (base, text, class) in [
        (&plain, arms("if A", lines, lines), "ambiguous"),
        (&plain, arms("if A", lines, "  other();\n"), "exact"),
        (&arms("if A", lines, "  other();\n"), arms("if A", lines, lines), "exact"),
        (&arms("if A", lines, "  other();\n"), arms("if B", lines, lines), "ambiguous"),
        (&two, arms("if B", &b, &a), "conflict"),
        (&arms("if A", lines, lines), arms("if B", lines, lines), "ambiguous"),
        (&two, arms("if B", &a, &b), "exact"),
        (&two, arms("if defined(A)", &a, &b), "exact"),
        (&two, format!("\n{two}"), "moved"),
    ] {
        let places = mapped(body, base, &text);
        assert_eq!(classes(&places), [class], "{base}{text} {places:?}");
    }
}

#[test]
fn all_that_heads_a_body_counts() {
    for (head, names) in [
        ("#if Q\nvoid first() {\n#else\nvoid other() {\n#endif\n", ["first", "other"]),
        ("void first\n#if Q\n(int a) {\n#else\n() {\n#endif\n", ["first", "first"]),
        ("A::first(int a)\n    : a_{\n          1,\n      },\n      b_(2) {\n", ["first", "A"]),
        ("void first() {  // a \\\n}\n", ["first", "first"]),
    ] {
        let base = format!("{head}  one();\n  two();\n  three();\n  four();\n}}\n");
        let line = head.lines().count() + 1;
        let body = format!(
            "@@ -{line},4 +{line},5 @@\n   one();\n   two();\n+  new();\n   three();\n   four();\n"
        );
        assert_eq!(classes(&mapped(&body, &base, &format!("\n{base}"))), ["moved"], "{head}");
        for name in names {
            let text = base.replace(name, "second");
            assert_eq!(classes(&mapped(&body, &base, &text)), ["conflict"], "{text}");
        }
    }
}

/// Outside of functions the lines are looked at where they are now, which may be
/// further down than the text that they were made for goes.
#[test]
fn a_longer_text_is_read_at_its_own_lines() {
    let base = "a0;\nint b = 1;\n\nint c = 2;\nint d = 3;\n  ;\n  x = 1;\nlast();\n";
    let text = "a0;\nn1();\nn2();\nn3();\nn4();\nint b = 1;\n\n  ;\n  x = 1;\nlast();\n";
    let body = "@@ -4,5 +4,3 @@\n int c = 2;\n int d = 3;\n   ;\n-  x = 1;\n-last();\n";
    assert_eq!(classes(&mapped(body, base, text)), ["moved"]);
}

#[test]
fn a_heading_that_is_over_heads_nothing_more() {
    let base = "namespace n {\nM(one)\nL(two)\n} // n\n\nvoid f(\n    int a);\n\nint x;\n";
    let body = "@@ -7,3 +7,4 @@\n     int a);\n \n+new;\n int x;\n";
    assert_eq!(classes(&mapped(body, base, &base.replace("f(", "g("))), ["moved"]);
    let body = "@@ -4,3 +4,4 @@\n } // n\n \n+new;\n void f(\n";
    assert_eq!(classes(&mapped(body, base, &base.replace("L(two)\n", ""))), ["moved"]);
    // A macro's body goes on.
    let base = "M(one)\n{\n  a;\n  b;\n  c;\n  d;\n}\n";
    let body = "@@ -4,3 +4,4 @@\n   b;\n+  new;\n   c;\n   d;\n";
    assert_eq!(classes(&mapped(body, base, &base.replace("one", "two"))), ["conflict"]);
}

#[test]
fn a_declaration_of_the_one_name_may_get_another_type() {
    let base = "API T f(\n    int a,\n    int b,\n    int c,\n    S s);\n";
    let body = "@@ -1,5 +1,6 @@\n API T f(\n     int a,\n     int b,\n+    int n,\n     int c,\n     \
                S s);\n";
    let changed = base.replace("API T", "T").replace("int a", "long a");
    assert_eq!(classes(&mapped(body, base, &changed)), ["moved"]);
    let twice = format!("T f(\n    int x,\n    S s);\n{changed}");
    assert_eq!(classes(&mapped(body, base, &twice)), ["conflict"]);
    assert_eq!(classes(&mapped(body, base, &changed.replace("f(", "g("))), ["conflict"]);
}

#[test]
fn a_condition_around_a_function_counts() {
    let base = "#if V >= 3\nvoid o() {\n  a;\n  b;\n  c;\n  d;\n}\n#else\nvoid o() {\n  t;\n}\n\
                #endif\n";
    let body = "@@ -4,2 +4,3 @@\n   b;\n+  new;\n   c;\n";
    let with = |condition: &str| base.replace("#if V >= 3", condition);
    for (condition, class) in [
        ("#if V < 3", "conflict"),
        ("#if !(V >= 3)", "conflict"),
        ("#if 3 <= V", "exact"),
        ("#if V >= 4", "exact"),
        ("#if V >= 3 && W", "exact"),
        ("#if W\n#endif\n#if V >= 3", "moved"),
        ("#if V >= 3\nint x;\n#endif\n#if W", "conflict"),
    ] {
        let places = mapped(body, base, &with(condition));
        assert_eq!(classes(&places), [class], "{condition}: {places:?}");
    }
    let base = &with("#if defined(A) && B");
    for condition in ["#if !defined(A) && B", "#if B && !A", "#ifndef A"] {
        let places = mapped(body, base, &with(condition));
        assert!(why(&places).contains("where `A` is not met"), "{places:?}");
    }
    // One that changed is always told.
    let base = &with("#ifdef A");
    let text = with("#ifdef B");
    let found = mapped(body, base, &text);
    let nearby = found[0].as_ref().ok().and_then(|placed| placed.nearby.as_ref());
    assert_eq!(nearby.expect("told").diff, ["@@ -1,1 +1,1 @@", "-#ifdef A", "+#ifdef B"]);
    let two = format!("{base}\n{}", base.replace("#ifdef A", "#ifdef B").replace("o()", "p()"));
    let swapped = two.replace("ifdef A", "ifdef C").replace("ifdef B", "ifdef A");
    let swapped = swapped.replace("ifdef C", "ifdef B");
    let places = mapped(body, &two, &swapped);
    assert!(
        why(&places).contains("under `#ifdef B`, and it was made for `#ifdef A`"),
        "{places:?}"
    );
}

#[test]
fn a_heading_in_the_context_may_change_but_for_its_name() {
    for (head, other, class) in [
        ("static const int A[] = {", "constexpr int A[] = {", "moved"),
        ("int A[6] = {", "int A[7] = {", "moved"),
        ("std::map<int> A = {", "std::set<int> A = {", "moved"),
        ("int A[6] = {", "int B[6] = {", "conflict"),
        ("enum E {", "enum E : int {", "moved"),
        ("class E {", "class E : public F {", "moved"),
        ("class API E {", "class E {", "moved"),
        ("struct E {", "struct alignas(16) E {", "moved"),
        ("union E {", "struct E {", "moved"),
        ("union E {", "union F {", "conflict"),
    ] {
        let base = format!("int first;\n\n{head}\n  a,\n  b,\n  c,\n  d,\n}};\n");
        let body = format!("@@ -3,5 +3,6 @@\n {head}\n   a,\n   b,\n+  new,\n   c,\n   d,\n");
        let text = base.replace(head, other).replace("int first", "long first");
        let places = mapped(&body, &base, &text);
        assert_eq!(classes(&places), [class], "{other}: {places:?}");
    }
}
