use proptest::prelude::*;

use super::*;
use crate::snapshot::{File, MemoryTree, Mode};

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    MemoryTree(
        files
            .iter()
            .map(|(path, text)| {
                let path = TreePath::new(path).expect("a plain path");
                (path, File::new(Mode::Regular, text.as_bytes()))
            })
            .collect(),
    )
}

fn run(files: &[(&str, &str)]) -> Result<(String, Sources), ExpandError> {
    let tree = tree(files);
    let mut words = Vec::new();
    let first = TreePath::new(files[0].0).expect("a plain path");
    let sources = expand(&tree, &first, &METAL, &mut |t| {
        words.push(String::from_utf8_lossy(t.text).into_owned());
    })?;
    Ok((words.join(" "), sources))
}

fn of(text: &str) -> String {
    match run(&[("a.metal", text)]) {
        Ok((text, _)) => text,
        Err(e) => e.to_string(),
    }
}

#[test]
fn the_examples_of_the_standard() {
    // C++ [cpp.rescan] and [cpp.stringize], the examples there.
    let head = "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n\
                #define z z[0]\n#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n\
                #define p() int\n#define q(x) x\n#define r(x,y) x ## y\n#define str(x) # x\n";
    for (text, wanted) in [
        (
            "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);",
            "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 ) ;",
        ),
        (
            "g(x+(3,4)-w) | h 5) & m(f)^m(m);",
            "f ( 2 * ( 2 + ( 3 , 4 ) - 0 , 1 ) ) | f ( 2 * ( ~ 5 ) ) & f ( 2 * ( 0 , 1 ) ) ^ m ( 0 , 1 ) ;",
        ),
        (
            "p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };",
            "int i [ ] = { 1 , 23 , 4 , 5 , } ;",
        ),
        (
            "str( strncmp(\"abc\\0d\",   \"abc\", '\\4') == 0 ) str(: @\\n)",
            r#""strncmp(\"abc\\0d\", \"abc\", '\\4') == 0" ": @\n""#,
        ),
    ] {
        assert_eq!(of(&format!("{head}{text}")), wanted, "{text}");
    }
}

#[test]
fn variable_arguments() {
    let head = "#define call(f, ...) f(__VA_ARGS__)\n#define log(s, ...) p(s, ## __VA_ARGS__)\n";
    assert_eq!(
        of(&format!("{head}call(a, b, (c, d)) call(e) log(x) log(x, y)")),
        "a ( b , ( c , d ) ) e ( ) p ( x ) p ( x , y )"
    );
}

#[test]
fn conditions_choose_one_branch() {
    let text = "#if defined(A) || __METAL_VERSION__ >= 400\n1\n#elif defined __METAL__\n2\n#if 0\n#else\n3\n\
                #endif\n#else\n4\n#error no\n#endif\n#ifndef A\n5\n#endif";
    assert_eq!(of(text), "2 3 5");
    assert_eq!(
        of("x\n#if f(1)\n#endif"),
        "`a.metal` line 2: the condition `f(1)` is no integer expression"
    );
}

#[test]
fn includes_are_followed_inside_the_tree() {
    let (text, sources) = run(&[
        (
            "k/a.metal",
            "#include <metal_stdlib>\n#include \"k/b.h\"\n#include \"b.h\"\n#include \"../c.h\"\n\
                       #include \"gone.h\"\nB",
        ),
        ("k/b.h", "#pragma once\n#define B 7\nb"),
        ("c.h", "c"),
    ])
    .expect("it expands");
    assert_eq!(text, "b c 7");
    assert_eq!(sources.absent, ["<metal_stdlib>", "\"gone.h\""]);
    assert_eq!(sources.read.len(), 3);
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_place() {
    for (text, wanted) in [
        ("\n#define f(a) a\nf(1\n#define g\n)", "line 3: the call of macro `f` has no `)`"),
        ("#define f(a) a\n\nf(1, 2)", "line 3: macro `f` takes 1 arguments and is given 2"),
        ("#define (", "line 1: a `#define` without a name"),
        ("#define f(a) # b", "line 1: a `#` before something"),
        ("#define f ## a", "line 1: a `##` at the end"),
        ("#if 1\n", "line 2: an `#if` without"),
        ("#else", "line 1: an `#else` without"),
        ("#include X", "line 1: cannot follow"),
        ("#error bad", "line 1: #error bad"),
        ("#include \"a.metal\"", "includes nest deeper"),
    ] {
        assert!(of(text).contains(wanted), "{text:?} gives {:?}", of(text));
    }
}

#[test]
fn a_macro_that_doubles_itself_is_stopped() {
    let mut text = String::from("#define a0 x x x x x x x x x x\n");
    for i in 1..12 {
        let body = format!("a{} ", i - 1).repeat(10);
        text.push_str(&format!("#define a{i} {body}\n"));
    }
    text.push_str("a11");
    assert!(of(&text).contains("expands to more than"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_text_makes_it_panic(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "#define f(a, ...) ", "#define g ", "#define h() ", "\n", "f", "g", "h", "(", ")", ",",
                "##", "#", "a", "__VA_ARGS__", "\"s\"", "#if ", "#elif ", "#else\n", "#endif\n",
                "defined", "1", "#undef f\n", "#include \"a.metal\"\n", "#pragma once\n", "? ", ": ",
            ]),
            0..50,
        )
    ) {
        let _ = of(&words.concat());
    }
}
