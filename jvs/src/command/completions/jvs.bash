# jvs for bash. To have it in every shell:
#   jvs completions bash > ~/.local/share/bash-completion/completions/jvs
_jvs() {
    local -a typed=() offered=()
    local word last='' i
    # What readline takes apart at = and : is one word to us.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#typed[@]} > 1)) && [[ $word == [=:]* || $last == *[=:] ]]; then
            typed[${#typed[@]} - 1]+=$word
        else
            typed+=("$word")
        fi
        last=$word
    done
    local current=${typed[${#typed[@]} - 1]} part=$last line
    [[ $part == [=:] ]] && part=''
    local before=${current%"$part"}
    mapfile -t offered < <(command jvs __complete -- "${typed[@]}" 2>/dev/null)
    COMPREPLY=()
    for line in "${offered[@]:1}"; do
        line=${line%% *}
        COMPREPLY+=("${line#"$before"}")
    done
    case ${offered[0]} in
        files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$part") ;;
        directories) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$part") ;;
        programs) mapfile -t COMPREPLY < <(compgen -c -- "$part") ;;
    esac
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _jvs jvs
