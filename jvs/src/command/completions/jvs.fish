# jvs for fish. To have it in every shell:
#   jvs completions fish > ~/.config/fish/completions/jvs.fish
function __jvs_complete
    set -l current (commandline -ct)
    set -l offered (command jvs __complete -- (commandline -opc) "$current" 2>/dev/null)
    switch "$offered[1]"
        case files
            __fish_complete_path "$current"
        case directories
            __fish_complete_directories "$current" ''
        case programs
            __fish_complete_command
    end
    for line in $offered[2..-1]
        string replace ' ' \t -- $line
    end
end
complete -c jvs -k -f -a '(__jvs_complete)'
