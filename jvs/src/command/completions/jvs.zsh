#compdef jvs
# jvs for zsh. To have it in every shell, save it as _jvs in a directory of $fpath.
_jvs() {
    local -a typed offered values shown
    local line
    typed=("${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}")
    offered=("${(@f)$(command jvs __complete -- "${typed[@]}" 2>/dev/null)}")
    case ${offered[1]} in
        files) compset -P '*='; _files; return ;;
        directories) compset -P '*='; _files -/; return ;;
        programs) _command_names -e; return ;;
    esac
    for line in "${(@)offered[2,-1]}"; do
        values+=("${line%% *}")
        shown+=("${line/ /  -- }")
    done
    if (( ${#values} == 1 )) && [[ ${values[1]} == */ ]]; then
        compadd -S '' -a values
    else
        compadd -V jvs -l -d shown -a values
    fi
}
if [ "$funcstack[1]" = _jvs ]; then _jvs "$@"; else compdef _jvs jvs; fi
