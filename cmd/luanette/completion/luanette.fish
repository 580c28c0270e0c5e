# fish completion for luanette: luanette completion fish > ~/.config/fish/completions/luanette.fish
function __luanette_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (luanette __complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c luanette -f -a '(__luanette_complete)'
