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
