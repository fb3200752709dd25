# Completion of concertina in bash, also after `mpirun ... concertina`.
_concertina() {
  local line=${COMP_LINE:0:COMP_POINT} i=0 keep
  local -a words
  read -ra words <<< "$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  while ((i < ${#words[@]})) && [[ ${words[i]##*/} != concertina ]]; do ((++i)); done
  ((i + 1 < ${#words[@]})) || return 0
  mapfile -t COMPREPLY < <("${words[i]}" completion words -- "${words[@]:i+1}" 2> /dev/null)
  # Readline replaces only what follows the last '='.
  if [[ $COMP_WORDBREAKS == *=* && ${words[-1]} == *=* ]]; then
    keep=${words[-1]%"${words[-1]##*=}"}
    COMPREPLY=("${COMPREPLY[@]#"$keep"}")
  fi
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]]; then
    compopt -o nospace 2> /dev/null
  fi
  return 0
}
complete -o default -F _concertina concertina
complete -p mpirun > /dev/null 2>&1 || complete -o default -F _concertina mpirun
