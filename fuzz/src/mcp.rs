//! What a client of the MCP server sends: lines, and the handles and URIs in them.

/// A line is a message or is refused in one of three ways. A handle and a URI have one
/// spelling, and none of them becomes an option of a command.
pub(crate) fn mcp_frame(data: &[u8]) {
    let refused = jvs_mcp::fuzzing::refuses_frame(data);
    assert!(matches!(refused, None | Some(-32700 | -32600 | -32602)), "{refused:?}");
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(handle) = jvs_mcp::fuzzing::handle(text) {
        assert_eq!(handle, text);
    }
    if let Some((uri, words)) = jvs_mcp::fuzzing::resource(text) {
        assert_eq!(uri, text);
        let last = words.last().expect("a command has words");
        let known = ["--all", "--worktree="].iter().any(|option| last.starts_with(option));
        assert!(!last.starts_with('-') || known, "{words:?}");
    }
}
