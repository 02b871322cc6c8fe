//! Lines deep in a list or a table, whose first line is out of a hunk's sight.

use super::*;

/// A list of ten rows.
fn list(head: &str, end: &str) -> String {
    let rows: String = (0..10).map(|n| format!("    {n},\n")).collect();
    format!("{head}\n{rows}{end}\n\n")
}

/// Puts a row in the first list, whose head takes up these lines.
fn row(above: usize) -> String {
    let at = above + 5;
    format!("@@ -{at},2 +{at},3 @@\n     4,\n+    44,\n     5,\n")
}

#[test]
fn a_table_of_another_name_is_another() {
    let head = "static const int A[10] = {";
    let two = |first: &str, second: &str| {
        format!("#include <m>\n{}{}int z;\n", list(first, "};"), list(second, "};"))
    };
    let base = two(head, "static const int B[] = {");
    let body = row(2);
    for same in [
        "constexpr int A[] = {",
        "const std::array<int, 10> A = {{",
        "const std::map<int, std::function<void(int)>> A = {",
        "std::vector<int> A{",
        "static const int\n    A[] =\n{",
        "static const auto A = make<int>({",
        "#if Q\nstatic const int A[] = {\n#else\nstatic const long A[] = {\n#endif",
        "__constant__ int A[] __attribute__((aligned(16))) = {",
    ] {
        let text = two(same, "static const int B[] = {");
        assert!(mapped(&body, &base, &text)[0].is_ok(), "{text}");
    }
    for (first, second, there) in [
        ("static const int B[10] = {", "static const int A[] = {", "B"),
        ("static const int C[10] = {", "static const int B[] = {", "C"),
        ("std::vector<int> B{", "std::vector<int> A{", "B"),
        ("const int A::B[] = {", "const int B::A[] = {", "A::B"),
    ] {
        let places = mapped(&body, &base, &two(first, second));
        let expected = format!("in `{there}`, and it was made for `A`");
        assert!(why(&places).contains(&expected), "{first}: {}", why(&places));
    }
    // In a function, and in a class.
    for around in ["void f() {", "struct S {"] {
        let inner = |text: &str| text.replace("<m>\n", &format!("<m>\n{around}\n")) + "};\n";
        let body = row(3);
        let (old, gone) = (inner(&base), inner(&base.replace("A[10]", "C[10]")));
        assert_eq!(classes(&mapped(&body, &old, &format!("\n{old}"))), ["moved"]);
        assert_eq!(classes(&mapped(&body, &old, &gone)), ["conflict"], "{gone}");
    }
}

#[test]
fn what_is_no_named_table_may_be_written_anew() {
    for (head, other, end) in [
        ("auto a = make(", "const auto b = make(", ");"),
        ("void f() {\n  if (a ||", "void f() {\n  if (b ||", ") {\n  }\n}"),
        ("T f() {\n  return {", "T f() {\n  return T{", "};\n}"),
        ("void f() {\n  run(a, {", "void f() {\n  go(b, c, {", "});\n}"),
        ("void f() {\n  run(a, [&] {", "void f() {\n  run(b, [=](int c) {", "});\n}"),
        ("A::A(int a) : a_(a), b_{", "A::A(int a) : a_(a + 1), b_{", "} {\n}"),
        (
            "T f() {\n  g({.a = 1,\n     .b = 2}, {",
            "T f() {\n  g({.c = 1,\n     .d = 2}, {",
            "});\n}",
        ),
    ] {
        let base = format!("#include <m>\n{}", list(head, end));
        let text = base.replace(head, other);
        let body = row(head.lines().count() + 1);
        assert!(mapped(&body, &base, &text)[0].is_ok(), "{:?}", mapped(&body, &base, &text));
    }
}

#[test]
fn a_list_of_a_script_is_told_by_its_name() {
    let two = |first: &str, second: &str, end: &str| {
        format!("import m\n\n\ndef f():\n    pass\n\n\n{}{}", list(first, end), list(second, end))
    };
    let body = row(8);
    for (end, first, same, other) in [
        ("]", "A = [", "A: list[int] = [", "B = ["),
        ("]", "A = [", "A += [  # more", "A.b = ["),
        ("}", "a.b = {", "a.b = {  # c", "b = {"),
        ("])", "A = frozenset([", "A = set([", "B = frozenset(["),
    ] {
        let base = two(first, other, end);
        for text in [base.clone(), base.replace("def f():\n    pass\n", "")] {
            let at = text.lines().position(|l| l == first).expect("a list") + 1;
            let body = row(at);
            let kept = text.replacen(first, same, 1);
            assert!(mapped(&body, &text, &kept)[0].is_ok(), "{:?}", mapped(&body, &text, &kept));
            let swapped = text.replace(first, "@").replace(other, first).replace('@', other);
            let places = mapped(&body, &text, &swapped);
            assert!(why(&places).contains("and it was made for `"), "{places:?}");
        }
    }
    // What a call is given is no list of the name that its result has.
    let base = two("a = f(", "b = f(", ")");
    let text = base.replacen("a = f(", "c = f(", 1);
    assert!(mapped(&body, &base, &text)[0].is_ok(), "{text}");
}

#[test]
fn a_list_of_cmake_is_told_by_its_name() {
    let files: String = (0..10).map(|n| format!("  f{n}.cpp\n")).collect();
    let two = |first: &str, second: &str| {
        format!("project(m)\n\n{first}\n{files})\n\n{second}\n# more\n\n{files})\n")
    };
    let put = |above: usize| {
        let at = above + 5;
        format!("@@ -{at},2 +{at},3 @@\n   f4.cpp\n+  mine.cpp\n   f5.cpp\n")
    };
    for (first, same, other) in [
        ("set(A", "SET (A", "set(B"),
        ("set(A", "set(\n  A", "set(B"),
        ("list(APPEND A", "list(PREPEND A", "list(APPEND B"),
        ("target_sources(a PRIVATE", "target_sources(a PUBLIC", "target_sources(b PRIVATE"),
    ] {
        let base = two(first, other);
        let kept = base.replacen(first, same, 1);
        assert!(mapped(&put(3), &base, &kept)[0].is_ok(), "{same}");
        let swapped = base.replace(first, "@").replace(other, first).replace('@', other);
        // The second has a comment and a blank line before the row.
        for above in [3, 18] {
            let places = mapped(&put(above), &base, &swapped);
            assert!(why(&places).contains("and it was made for `"), "{above} {places:?}");
        }
    }
    let base = two("if(A", "if(B");
    assert!(mapped(&put(3), &base, &base.replace("if(A", "if(C"))[0].is_ok());
}

#[test]
fn code_that_a_script_puts_into_words_is_no_code() {
    let python =
        "import m\n\ndef f():\n    one()\n    two()\n    three()\n    four()\n    five()\n";
    let cmake =
        "project(m)\nif(A)\n    one()\n    two()\n    three()\n    four()\n    five()\nendif()\n";
    let put =
        |at: usize| format!("@@ -{at},2 +{at},3 @@\n     three()\n+    mine()\n     four()\n");
    for (base, at, open, close) in [
        (python, 6, "    \"\"\"", "    \"\"\""),
        (python, 6, "    x = r'''", "    '''"),
        (cmake, 5, "  #[[", "  ]]"),
        (cmake, 5, "  #[=[ off ]]", "  on ]=]"),
        (cmake, 5, "  set(A \"", "  \")"),
    ] {
        let opened = base.replace("    two()\n", &format!("{open}\n    two()\n"));
        let off = opened.replace("    five()\n", &format!("    five()\n{close}\n"));
        let places = mapped(&put(at), base, &off);
        assert!(why(&places).contains("into a comment or a string"), "{places:?}");
        let over = opened.replace("    two()\n", &format!("{close}\n    two()\n"));
        assert_eq!(classes(&mapped(&put(at), base, &over)), ["moved"], "{over}");
        // What was in words before may go on in them.
        assert_eq!(classes(&mapped(&put(at + 1), &off, &format!("\n{off}"))), ["moved"], "{off}");
    }
    // A `#` of CMake begins no condition, and `/*` no comment.
    let globbed = cmake.replace("if(A)\n", "# if it is\nfile(GLOB a b/*.c)\nif(A)\n");
    assert_eq!(classes(&mapped(&put(5), cmake, &globbed)), ["moved"]);
}
