//! Second copies of lines that upstream put in.

use super::*;

const IN_LIST: &str = "@@ -4,6 +4,7 @@\n   a,\n   b,\n   c,\n+  new,\n   d,\n   e,\n   f,\n";

/// Rows `a` to `f` under a head, closed.
fn block(head: &str) -> String {
    format!("{head} {{\n  a,\n  b,\n  c,\n  d,\n  e,\n  f,\n}};\n")
}

fn either(condition: &str, first: &str, second: &str) -> String {
    format!("#pragma once\n\n#if {condition}\n{first}#else\n{second}#endif\n\nint last;\n")
}

#[test]
fn a_class_or_a_table_in_both_arms_leaves_the_place_open() {
    for head in ["class A", "struct B : C", "enum class E", "static const int T[] ="] {
        let (own, plain) = (block(head), format!("#pragma once\n\n{}\nint last;\n", block(head)));
        let gone = own.replace("  f,\n", "");
        let stub = format!("{head} {{\n  other,\n}};\n");
        let other = gone.replace(head, "struct D");
        for (first, second, class) in [
            (&own, &own, "ambiguous"),
            // A line of the hunk's context is gone from both, or from the second.
            (&gone, &gone, "ambiguous"),
            (&own, &gone, "ambiguous"),
            (&gone, &stub, "moved"),
            (&stub, &gone, "moved"),
            (&gone, &other, "moved"),
        ] {
            let text = either("NEW", first, second);
            let places = mapped(IN_LIST, &plain, &text);
            assert_eq!(classes(&places), [class], "{text} {places:?}");
            // One after the other, each under a condition of its own.
            let apart = text.replace("#else\n", "#endif\n\n#ifdef OLD\n");
            let places = mapped(IN_LIST, &plain, &apart);
            assert_eq!(classes(&places), [class], "{apart} {places:?}");
        }
    }
}

#[test]
fn conditions_tell_which_arm_of_two_is_the_old_one() {
    let (own, gone) = (block("class A"), block("class A").replace("  f,\n", ""));
    let body = IN_LIST.replace("-4,6 +4,7", "-5,6 +5,7");
    let one = format!("#pragma once\n\n#if OLD\n{own}#endif\n\nint last;\n");
    let two = either("OLD", &own, &own.replace("  f,\n", "  g,\n"));
    for (base, condition, class) in [
        (&one, "OLD", "moved"),
        (&one, "OLD && MORE", "moved"),
        (&one, "NEW", "ambiguous"),
        // Both arms were there before.
        (&two, "OLD", "moved"),
        (&two, "NEW", "ambiguous"),
    ] {
        let text = either(condition, &gone, &gone);
        let places = mapped(&body, base, &text);
        assert_eq!(classes(&places), [class], "{base}{text} {places:?}");
    }
    let text = two.replace("OLD", "NEW");
    assert_eq!(classes(&mapped(&body, &two, &text)), ["exact"], "the rest tells");
}

#[test]
fn declarations_in_both_arms_leave_the_place_open() {
    let lines: String = ('a'..='f').map(|name| format!("int {name}();\n")).collect();
    let plain = format!("#pragma once\n\n{lines}\nint last;\n");
    let body = "@@ -4,4 +4,5 @@\n int b();\n int c();\n+int n();\n int d();\n int e();\n";
    let gone = lines.replace("int e();\n", "");
    for (second, class) in
        [(&lines, "ambiguous"), (&gone, "ambiguous"), (&"int g();\n".to_owned(), "moved")]
    {
        let text = either("NEW", &gone, second);
        let places = mapped(body, &plain, &text);
        assert_eq!(classes(&places), [class], "{text} {places:?}");
    }
}

/// A function of eight steps.
fn steps(head: &str) -> String {
    let body: String = (0..8).map(|n| format!("  step{n}(a);\n")).collect();
    format!("{head} {{\n{body}}}\n")
}

#[test]
fn of_a_function_and_its_copy_the_name_tells_which_is_the_old_one() {
    for head in ["void f(int a)", "template <typename T>\nvoid f(T a)", "void f(\n    int a)"] {
        let (own, copy) = (steps(head), steps(&head.replace("f(", "g(")));
        let file = |text: &str| format!("#include <m>\n\n{text}\nint last;\n");
        let base = file(&own);
        let line = |text: &str, wanted: &str| {
            text.lines().position(|line| line == wanted).expect("it is there") + 1
        };
        for step in [0, 3, 6] {
            let (one, two) = (format!("  step{step}(a);"), format!("  step{}(a);", step + 1));
            let at = line(&base, &one);
            let body = format!("@@ -{at},2 +{at},3 @@\n {one}\n+  new(a);\n {two}\n");
            for copy in [copy.clone(), copy.replace("  step5(a);\n", "")] {
                for text in [file(&format!("{own}\n{copy}")), file(&format!("{copy}\n{own}"))] {
                    let places = mapped(&body, &base, &text);
                    let placed = places[0].as_ref().unwrap_or_else(|no| panic!("{text}{no:?}"));
                    let name = text.find(" f(").expect("it is there");
                    let first = text[..name].lines().count() + line(&text[name..], &one) - 1;
                    assert_eq!(placed.edits[0].range, first..first, "{text}");
                    assert!(placed.nearby.is_none() || !text.contains(&copy), "{text}");
                }
            }
            // Under the name of neither, or of both, nothing tells.
            let other = |text: &str| text.replace("f(", "h(");
            let text = file(&format!("{}\n{copy}", other(&own)));
            assert!(mapped(&body, &base, &text)[0].is_err(), "{text}");
            let text = file(&format!("#if A\n{own}#else\n{own}#endif\n"));
            assert_eq!(classes(&mapped(&body, &base, &text)), ["ambiguous"], "{text}");
        }
    }
}

#[test]
fn a_copy_of_a_method_by_indentation_is_told_by_its_name() {
    let method = |name: &str, tail: &str| {
        format!("    def {name}(self):\n        one()\n        two()\n        three()\n{tail}\n")
    };
    let file = |methods: &str| format!("import m\n\n\nclass A:\n{methods}\nlast = 1\n");
    let base = file(&method("f", ""));
    let body = "@@ -7,2 +7,3 @@\n         two()\n+        new()\n         three()\n";
    for (first, second, line) in
        [(method("f", ""), method("g", ""), 7), (method("g", ""), method("f", ""), 12)]
    {
        let text = file(&(first + &second));
        let places = mapped(body, &base, &text);
        let placed = places[0].as_ref().unwrap_or_else(|no| panic!("{text}{no:?}"));
        assert_eq!(placed.edits[0].range, line..line, "{text}");
    }
}

#[test]
fn a_copy_that_has_the_change_does_not_hide_the_old_one() {
    let own = steps("void f(int a)");
    let copy = steps("void g(int a)").replace("  step3(a);\n", "  step3(a);\n  new(a);\n");
    let file = |text: &str| format!("#include <m>\n\n{text}\nint last;\n");
    let body = "@@ -7,2 +7,3 @@\n   step3(a);\n+  new(a);\n   step4(a);\n";
    let places = mapped(body, &file(&own), &file(&format!("{own}\n{copy}")));
    assert!(places[0].as_ref().is_ok_and(|placed| placed.edits[0].range == (7..7)), "{places:?}");
    let swapped = file(&format!("{copy}\n{own}"));
    let places = mapped(body, &file(&own), &swapped);
    assert!(places[0].as_ref().is_ok_and(|placed| placed.edits[0].range == (19..19)), "{places:?}");
}

/// However much context a hunk has.
#[test]
fn a_body_in_two_blocks_of_its_function_leaves_the_place_open() {
    let lines = |indent: &str| -> String { (0..6).map(|n| format!("{indent}a{n}();\n")).collect() };
    let function = |body: &str| format!("void f() {{\n  setup();\n{body}  end();\n}}\n");
    let hunks: Vec<String> = (1..=3)
        .map(|context| {
            let above: String = (3 - context..3).map(|n| format!("   a{n}();\n")).collect();
            let below: String = (3..3 + context).map(|n| format!("   a{n}();\n")).collect();
            let first = 6 - context;
            let (old, new) = (2 * context, 2 * context + 1);
            format!("@@ -{first},{old} +{first},{new} @@\n{above}+  mine();\n{below}")
        })
        .collect();
    let (plain, body) = (function(&lines("  ")), lines("  "));
    for (text, class) in [
        (format!("  if (x) {{\n{body}  }} else {{\n{body}  }}\n"), "ambiguous"),
        (format!("  for (;;) {{\n{body}  }}\n  while (x) {{\n{body}  }}\n"), "ambiguous"),
        // What is beside the change is another's in one of the two.
        (format!("  if (x) {{\n{}  }} else {{\n{body}  }}\n", body.replace("a2", "b2")), "moved"),
    ] {
        for hunk in &hunks {
            let places = mapped(hunk, &plain, &function(&text));
            assert_eq!(classes(&places), [class], "{hunk}{text} {places:?}");
        }
    }
    // A function of Python, and one of CMake, whose block ends within the context.
    for (before, open, close) in
        [("def f():\n", "    if x:\n", ""), ("function(f)\n", "    if(X)\n", "    endif()\n")]
    {
        let other = open.replace(['x', 'X'], "z");
        let body = lines("        ").replace(';', "");
        let text = |blocks: &[&str]| {
            let blocks: String = blocks.iter().map(|open| format!("{open}{body}{close}")).collect();
            let after = close.replace("    endif", "endfunction");
            format!("{before}    setup()\n{blocks}{after}\nset(A 1)\nset(B 2)\n")
        };
        let hunk = "@@ -6,5 +6,6 @@\n         a2()\n         a3()\n         a4()\n+        mine()\n         a5()\n";
        let tail =
            text(&[open]).lines().skip(9).take(2).map(|l| format!(" {l}\n")).collect::<String>();
        let hunk = hunk.replace("-6,5 +6,6", "-6,6 +6,7") + &tail;
        let places = mapped(&hunk, &text(&[open]), &text(&[&other, &other.replace('z', "y")]));
        assert_eq!(classes(&places), ["ambiguous"], "{places:?}");
    }
}
