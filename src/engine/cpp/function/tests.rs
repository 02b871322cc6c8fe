use proptest::prelude::*;

use super::*;

fn paths(text: &str) -> Vec<String> {
    functions(text.as_bytes()).into_iter().map(|f| f.path).collect()
}

#[test]
fn heads_of_every_shape() {
    let text = "\
#define METAL_FUNC inline {
namespace a::b { namespace {
template <typename T, int n = (3 > 2)>
METAL_FUNC T one(const device T* x [[buffer(0)]], T (*f)(int)) { return x[0]; }
}}
[[host_name(\"two\")]] [[kernel, max_total_threads_per_threadgroup(W * 32)]] void
two(uint3 tid [[thread_position_in_grid]]) { if (x) { one(1); } }
class K : public B {
 public:
  K() : a_{1}, b_(2), v_<int>{3} { body(); }
  void three() const noexcept override { }
  int declared(int);
  int with = 3;
  int table[2] = {1, 2};
};
INSTANTIATE(everything)
void K::four(std::vector<std::pair<int, int>> v) const { }
template <> int five<float, 2>() { return 1; }
enum class E { x = 1, y };
static const auto lambda = [](int q) { return q; };
__attribute__((noinline)) int six() { return '}' + \"}\"[0]; } // }
extern \"C\" { int seven() { return 7; } }
auto eight() -> decltype(six()) { return 8; }
";
    assert_eq!(
        paths(text),
        [
            "a::b::one",
            "two",
            "K::K",
            "K::three",
            "K::four",
            "five<float,2>",
            "six",
            "seven",
            "eight"
        ]
    );
    let two = find(text.as_bytes(), "two").expect("it is there");
    assert!(text[two.span.clone()].starts_with("[[host_name(\"two\")]]"));
    assert!(text[two.span].ends_with("one(1); } }"));
    assert_eq!(two.lines, (6, 7));
    assert_eq!(&text[two.name], "two");
}

#[test]
fn what_is_around_functions_has_names() {
    let text = "\
namespace a::b { namespace {
template <> struct [[nodiscard]] S<int> : B { enum class E : int { x }; struct { int y; } z; };
}}
enum F { f } g() { return f; }
class API A final : B { class alignas(8) C {}; };
extern \"C\" { union U { int a; }; }
#if A
class K : P {
#else
class L {
#endif
  void h() {}
};
int i() {}
";
    let (functions, enclosures) = functions_and_enclosures(text.as_bytes());
    let paths: Vec<_> = enclosures.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(paths, ["a::b", "a::b::S<int>", "a::b::S<int>::E", "F", "A", "A::C", "U", "L"]);
    for enclosure in &enclosures {
        let body = &text[enclosure.body.clone()];
        assert!(body.starts_with('{') && body.ends_with('}'), "{enclosure:?}");
    }
    assert_eq!(functions.iter().map(|f| &f.path[..]).collect::<Vec<_>>(), ["g", "L::h", "i"]);
}

#[test]
fn branches_of_an_if_are_told_apart() {
    let text = "#if A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n  g();\n}\nvoid h() {}\n";
    assert_eq!(paths(text), ["f", "h"]);
}

#[test]
fn several_heads_of_one_body_name_it() {
    let heads = |text: &str| -> Vec<(String, Option<String>)> {
        functions(text.as_bytes()).into_iter().map(|f| (f.path, f.also)).collect()
    };
    let two = "#if A\nvoid f(int a) {\n#else\nvoid g() {\n#endif\n  i();\n}\nvoid h() {}\n";
    assert_eq!(heads(two), [("g".into(), Some("f".into())), ("h".into(), None)]);
    assert_eq!(heads(&two.replace("g()", "f()"))[0], ("f".into(), None));
    let whole = two.replace("#else", "}\n#else");
    let own = ["f", "g", "h"].map(|name| (name.to_owned(), None));
    assert_eq!(heads(&whole), own);
    let parted = "void K<\n T>::f\n#if A\n(int a) {\n#else\n() {\n#endif\n  i();\n}\nvoid h() {}\n";
    assert_eq!(heads(parted), [("K::f".into(), None), ("h".into(), None)]);
    let late = "void f(\n#if A\n  int a) {\n#else\n  ) {\n#endif\n}\nvoid h() {}\n";
    assert_eq!(heads(late).last(), Some(&("h".into(), None)));
}

#[test]
fn operators_have_names() {
    let text = "\
struct A {
  int operator()(int a) const { return a; }
  A operator+(A a) { return a; }
  bool operator<(A a) noexcept(true) { return true; }
  A& operator=(const A&) { return *this; }
  int operator[](int i) { return i; }
  operator bool() const { return true; }
  operator const char*() { return 0; }
};
ostream& operator<<(ostream& o, A) { return o; }
bool A::operator==(const A& a) { return true; }
";
    let expected = [
        "A::operator()",
        "A::operator+",
        "A::operator<",
        "A::operator=",
        "A::operator[]",
        "A::operator bool",
        "A::operator const char*",
        "operator<<",
        "A::operator==",
    ];
    assert_eq!(paths(text), expected);
    for path in expected {
        let found = find(text.as_bytes(), path).expect("it is there");
        let name = path.strip_prefix("A::").unwrap_or(path);
        assert_eq!(&text[found.name], name);
    }
}

#[test]
fn specialisations_are_told_apart() {
    let text = "\
namespace n {
template <> struct S<int> { void go() {} };
template <> struct S<::std::pair<int, unsigned long>> { void go() {} };
template <typename T> struct Q<T, 4> : S<T> { void to() {} };
template <> void S<half>::go() {}
template <typename T> void R<T, (2 > 1)>::U<T>::of() {}
template <> int as<int, S<half>>(int a) {}
}
";
    let expected = [
        "n::S<int>::go",
        "n::S<std::pair<int,unsigned long>>::go",
        "n::Q<T,4>::to",
        "n::S<half>::go",
        "n::R::U::of",
        "n::as<int,S<half>>",
    ];
    assert_eq!(paths(text), expected);
    for name in ["go", "S::go", "n::S::go"] {
        assert_eq!(find_all(text.as_bytes(), name).len(), 3, "{name}");
    }
    for name in ["to", "Q::to", "S<int>::go", "n::Q<T,4>::to", "U::of", "n::as", "as<int,S<half>>"]
    {
        assert_eq!(find_all(text.as_bytes(), name).len(), 1, "{name}");
    }
}

#[test]
fn macros_that_stand_for_heads_are_told_apart() {
    let text = "\
TEST_CASE(\"one\") {}
TEST_CASE(\"two\") {}
MAKE(f, (A{1, 2}), int b) {}
struct K { K(int a) : a_(a) {} MAKE(a) {} };
K::K(int b) {}
MAKE() {}
METAL_FUNC void g(int a) {}
Make(int a) {}
";
    let expected = [
        "TEST_CASE(\"one\")",
        "TEST_CASE(\"two\")",
        "MAKE(f)",
        "K::K",
        "K::MAKE(a)",
        "K::K",
        "MAKE()",
        "g",
        "Make",
    ];
    assert_eq!(paths(text), expected);
    assert_eq!(find_all(text.as_bytes(), "TEST_CASE").len(), 2);
    assert_eq!(find_all(text.as_bytes(), "MAKE").len(), 3);
}

#[test]
fn attributes_are_no_names() {
    let text = "\
template <typename T, int N>
__global__ void __launch_bounds__(N * 32) one(T* a) {}
__launch_bounds__(512, 1)
__global__ void two(T* a) {}
static __declspec(dllexport) __attribute__((unused)) int three() { return 3; }
void four() __attribute__((noinline)) {}
struct __align__(16) A { int five; void six() {} };
";
    assert_eq!(paths(text), ["one", "two", "three", "four", "A::six"]);
    assert_eq!(find(text.as_bytes(), "one").expect("it is there").lines, (1, 2));
    assert_eq!(find(text.as_bytes(), "two").expect("it is there").lines, (3, 4));
}

#[test]
fn none_and_several_are_errors() {
    let text = b"int f(int a) { return a; }\n\nint f(float a) { return 1; }\nint g();\n";
    assert_eq!(find(text, "f"), Err(FindError::Several { name: "f".into(), lines: vec![1, 3] }));
    assert_eq!(find(text, "g"), Err(FindError::Missing { name: "g".into() }));
}

proptest! {
    #[test]
    fn any_text_gives_functions_inside_it(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "f", "(", ")", "{", "}", "<", ">", ">>", "[", "]", ";", ":", "::", "=", "class",
                "namespace", "template", "enum", "operator", "\n#if A\n", "\n#else\n",
                "\n#endif\n", "\n", "extern \"C\"", "/*", "\"",
            ]),
            0..60,
        )
    ) {
        let text = words.join(" ");
        for function in functions(text.as_bytes()) {
            prop_assert!(function.span.end <= text.len());
            prop_assert!(function.span.start <= function.body.start);
            prop_assert_eq!(text.as_bytes()[function.body.start], b'{');
            prop_assert!(function.lines.0 <= function.lines.1);
        }
    }
}

#[test]
fn a_macro_with_arguments_may_go_before_a_class_name() {
    let text = b"class API(x) A : public B {\n  void f() {\n  }\n};\nenum class API(y) E { e };\nstruct A g(int a) {\n}\nstruct A API(z) h(int a) {\n}\n";
    let (functions, enclosures) = functions_and_enclosures(text);
    let paths: Vec<_> = functions.iter().map(|f| &f.path[..]).collect();
    assert_eq!(paths[..2], ["A::f", "g"]);
    let around: Vec<_> = enclosures.iter().map(|e| &e.path[..]).collect();
    assert_eq!(around, ["A", "E"]);
}
