//! Names as people write them: Rust's are readable already, C++'s are made so here.

use hotspan_profiler::SourceFrame;

/// The readable name of a frame.
pub(crate) fn readable(frame: SourceFrame) -> String {
    if frame.name != frame.system_name || !frame.system_name.starts_with("_Z") {
        return frame.name;
    }
    let demangled = cpp_demangle::Symbol::new(&frame.system_name).ok().and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or(frame.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: a name of C++, one of Rust, one of C.
    /// Guarantee: the first is made readable, the others stay as they are.
    #[test]
    fn names_of_all_languages() {
        let frame = |system: &str, name: &str| SourceFrame {
            system_name: system.to_owned(),
            name: name.to_owned(),
            ..SourceFrame::default()
        };
        assert_eq!(readable(frame("_ZN4shop5orderEi", "_ZN4shop5orderEi")), "shop::order(int)");
        assert_eq!(readable(frame("_ZN4shop5order17h0123456789abcdefE", "shop::order")), "shop::order");
        assert_eq!(readable(frame("main", "main")), "main");
    }
}
