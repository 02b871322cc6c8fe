//! What upstream changed around a hunk.

use super::*;

/// A function of `count` statements, each on its line.
fn function(count: usize) -> String {
    let body: String = (0..count).map(|n| format!("  s{n}();\n")).collect();
    format!("int f() {{\n{body}}}\n")
}

/// The patch that makes `new` of `old`, as one hunk of all their lines.
fn whole(old: &str, new: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    let sign = |change: &similar::Change<&str>| match change.tag() {
        similar::ChangeTag::Equal => ' ',
        similar::ChangeTag::Delete => '-',
        similar::ChangeTag::Insert => '+',
    };
    let body: String =
        diff.iter_all_changes().map(|c| format!("{}{}", sign(&c), c.value())).collect();
    let count = |text: &str| text.lines().count();
    format!("@@ -1,{} +1,{} @@\n{body}", count(old), count(new))
}

#[test]
fn all_runs_of_a_hunk_land_or_part_of_it_is_there() {
    let base = function(12);
    let put = |at: usize, text: &str| {
        let line = format!("  s{at}();\n");
        text.replace(&line, &format!("{line}  m{at}();\n"))
    };
    let made = put(8, &put(3, &base));
    let body = whole(&base, &made);
    let changed = |text: &str| text.replace("s6()", "s6b()");
    assert_eq!(classes(&mapped(&body, &base, &changed(&made))), ["landed"]);
    assert_eq!(why(&mapped(&body, &base, &changed(&put(3, &base)))), "part of it is there already");
    let elsewhere = changed(&made).replace("f()", "g()");
    assert!(why(&mapped(&body, &base, &elsewhere)).contains("`f` is gone"));
}

#[test]
fn each_run_lands_in_its_own_method() {
    let method = |name: &str, more: &str| {
        format!("    def {name}(self):\n        a{name} = 1\n        self.go(a{name})\n{more}\n")
    };
    let more = |name: &str| format!("\n        a{name} = 2\n        self.go(a{name})\n");
    let class =
        |f: &str, g: &str| format!("u = 1\n\n\nclass A(B):\n{}{}", method("f", f), method("g", g));
    let (base, made) = (class("", ""), class(&more("f"), &more("g")));
    let body = whole(&base, &made);
    let text = made.replace("u = 1", "u = 2");
    assert_eq!(classes(&mapped(&body, &base, &text)), ["landed"]);
    let renamed = text.replace("class A", "class C");
    let places = mapped(&body, &base, &renamed);
    assert!(why(&places).contains("`A` is gone"), "{places:?}");
}

#[test]
fn lines_put_into_a_comment_or_a_string_are_no_code() {
    let base = function(6);
    let body = "@@ -3,2 +3,3 @@\n   s1();\n+  new();\n   s2();\n";
    for (open, close) in [("/* old\n", "*/\n"), ("const char* s = R\"(\n", ")\";\n")] {
        let text =
            base.replace("  s0();\n", &format!("  s0();\n{open}")).replace("}\n", close) + "}\n";
        let places = mapped(body, &base, &text);
        assert!(why(&places).contains("into a comment or a string"), "{places:?}");
    }
    // One that is over before the lines changes nothing.
    let text = base.replace("  s0();\n", "  s0();\n/* old\n*/\n");
    assert_eq!(classes(&mapped(body, &base, &text)), ["moved"]);
}

#[test]
fn what_ended_before_top_level_lines_does_not_head_them() {
    let base = "#pragma once\n\narray a(int x);\n\n/** c */\n\narray c(int x);\n\nint t[] = {\n  1,\n  2,\n  3,\n};\n";
    let body =
        "@@ -2,6 +2,6 @@\n \n array a(int x);\n \n-/** c */\n+/** my c */\n \n array c(int x);\n";
    let changed = base.replace("a(int x);", "a(int x, int y);");
    assert_eq!(classes(&mapped(body, base, &changed)), ["moved"]);
    let put = base.replace("array a(int x);\n", "array b(\n    int x);\narray a(int x);\n\n");
    assert_eq!(classes(&mapped(body, base, &put)), ["conflict"], "the line next to it");
    // What does not end there heads what is in it.
    let body = "@@ -9,4 +9,4 @@\n int t[] = {\n   1,\n-  2,\n+  5,\n   3,\n";
    assert_eq!(classes(&mapped(body, base, &base.replace("t[]", "u[]"))), ["conflict"]);
    let call = "make(a,\n  1,\n  2,\n  3);\n";
    let body = "@@ -1,4 +1,4 @@\n make(a,\n   1,\n-  2,\n+  5,\n   3);\n";
    let two = format!("take(a);\nmake(b,\n{}", call.split_once('\n').expect("lines").1);
    assert_eq!(classes(&mapped(body, call, &two)), ["conflict"]);
}

/// Each has its own means to end what is before the lines.
#[test]
fn a_new_heading_above_lines_that_it_does_not_hold_is_no_other_place() {
    for (above, other, near, put) in [
        ("import m\n\nf(1)\n", "import m\n\nf(2)\ng(2)\n", "\n# c\n", "# my\n"),
        ("project(m)\n\nset(A 1)\n", "project(m)\n\nset(A 2)\nset(B 2)\n", "\n# c\n", "# my\n"),
        ("project(m)\n\nfunction(a)\n", "project(m)\n\nFUNCTION(a)\n", "\n # c\n", " # my\n"),
        ("# A\n\nSome words.\n", "# A\n\nOther words.\nAnd more.\n", "\n- c\n", "- my\n"),
        ("A\n=\n\nSome words.\n", "A\n=\n\nOther words.\nAnd more.\n", "\n.. c\n", ".. my\n"),
        ("a: 1\nb: 2\n", "a: 1\nb: 3\nb2: 3\n", "\n# c\n", "# my\n"),
        (
            "namespace n {\nint a;\n}\n",
            "namespace n {\nint b;\n}\nint b2;\n",
            "\n// c\n",
            "// my\n",
        ),
    ] {
        let places = under(above, other, near, put);
        assert!(places[0].is_ok(), "{other} {places:?}");
        assert!(places[0].as_ref().is_ok_and(|placed| placed.nearby.is_some()), "{places:?}");
    }
    // What goes on there holds them.
    let places = under("a:\n  x: 1\n", "b:\n  x: 2\n", "\n  # c\n", "  # my\n");
    assert_eq!(classes(&places), ["conflict"]);
    let places = under("a(1,\n  1,\n", "b(2,\n  2,\n", "\n# c\n", "# my\n");
    assert_eq!(classes(&places), ["conflict"]);
}

#[test]
fn a_call_of_a_macro_that_is_over_heads_nothing_more() {
    let base = "int f() {\n  a;\n}\n\nREG(a)\nREG(\n    b)\n\n// c\nREG(d)\n";
    let body = "@@ -7,4 +7,4 @@\n     b)\n \n-// c\n+// my\n REG(d)\n";
    for (from, to) in
        [("    b)", "    c)"), ("REG(\n", "MAKE(\n"), ("    b)", "    b)\nREG(c)\n#if A\n#endif")]
    {
        let places = mapped(body, base, &base.replace(from, to));
        assert!(places[0].as_ref().is_ok_and(|placed| placed.nearby.is_some()), "{places:?}");
    }
    // What is indented under it, it may head.
    let (base, body) = (base.replace("// c", "  // c"), body.replace("-// c", "-  // c"));
    let places = mapped(&body, &base, &base.replace("REG(\n", "MAKE(\n"));
    assert_eq!(classes(&places), ["conflict"], "{places:?}");
}

/// A line put before the second of `near`, which `above` stood over and `other` does now.
fn under(above: &str, other: &str, near: &str, put: &str) -> Vec<Place> {
    let text = |above: &str| format!("{above}{near}\n+ d\n+ e\n");
    let (at, last) = (above.lines().count(), above.lines().last().expect("lines"));
    let next = near.trim_start_matches('\n');
    let body = format!("@@ -{at},4 +{at},5 @@\n {last}\n \n+{put} {next} \n");
    mapped(&body, &text(above), &text(other))
}

#[test]
fn what_a_patch_makes_has_landed_with_what_it_renames() {
    let base = function(6) + &function(12).replace("s", "t").replace("f()", "h()");
    let made = base.replace("f()", "g()").replace("  s4();\n", "  s4(1);\n");
    let body = "@@ -1,2 +1,2 @@\n-int f() {\n+int g() {\n   s0();\n@@ -5,3 +5,3 @@\n   s3();\n-  s4();\n+  s4(1);\n   s5();\n";
    let text = made.replace("t9()", "t9(2)");
    assert_eq!(classes(&mapped(body, &base, &text)), ["landed", "landed"]);
    // Half of it is not all of it.
    let half = base.replace("f()", "g()").replace("t9()", "t9(2)");
    assert_eq!(classes(&mapped(body, &base, &half)), ["landed", "conflict"]);
    // In another function it is something else.
    let other = text.replace("g()", "k()");
    assert_eq!(classes(&mapped(body, &base, &other)), ["conflict", "conflict"]);
}
