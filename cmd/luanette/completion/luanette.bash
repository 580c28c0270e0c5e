# bash completion for luanette: source <(luanette completion bash)
_luanette() {
  local line word="${COMP_WORDS[COMP_CWORD]}"
  [ "$word" = "=" ] && word=""
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = ":files" ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <(luanette __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _luanette luanette
