#compdef luanette
# zsh completion for luanette: source <(luanette completion zsh)
_luanette() {
  local line files
  local -a found
  for line in "${(@f)$(luanette __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ":files" ]]; then
      files=1
    elif [[ -n $line ]]; then
      found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    fi
  done
  (( $#found )) && _describe -V luanette found
  [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _luanette ]]; then
  _luanette "$@"
else
  compdef _luanette luanette
fi
