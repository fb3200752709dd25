# Checks the includes of a tree against its table of rooms (tests/rooms.txt).
# usage: awk -f rooms.awk ROOMS_TXT FILE...   (paths relative to the top of the tree)
# A room is a folder. A line "room: a b" says that files of the room may include headers of a and b,
# besides the room's own and those of core, core/model and core/text; rooms of experiments may also
# include any room outside experiments. A room has at most 50 files and 5,000 lines. Faults: a
# folder without a line, a line without a folder, an include that is not listed, and a listed room
# that is not included. Prints a line per fault.
function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
FILENAME == ARGV[1] {
  if (/^#/ || /^$/) next
  room = $1; sub(/:$/, "", room); row[room] = FNR
  for (i = 2; i <= NF; ++i) may[room, $i] = 1
  next
}
FNR == 1 {
  from = folder_of(FILENAME); seen[from] = 1; ++files[from]
  if (!(from in row) && !(from in told)) {
    print FILENAME ": tests/rooms.txt has no line for " from; told[from] = 1
  }
}
{ ++lines[from] }
/^[ \t]*#[ \t]*include[ \t]*"[^"]*\// {
  to = $0; sub(/^[^"]*"/, "", to); sub(/".*/, "", to); to = folder_of(to)
  if (to == from || to == "core" || !(from in row)) next
  if (from !~ /^core/ && (to == "core/model" || to == "core/text")) next
  if (from ~ /^experiments/ && to !~ /^experiments/) next
  if ((from, to) in may) used[from, to] = 1
  else print FILENAME ":" FNR ": tests/rooms.txt does not let " from " include " to
}
END {
  for (room in files) {
    if (files[room] > 50) print room ": " files[room] " files; a room may have at most 50, so split it"
    if (lines[room] > 5000) print room ": " lines[room] " lines; a room may have at most 5,000, so split it"
  }
  for (room in row) if (!(room in seen)) print "tests/rooms.txt:" row[room] ": there is no folder " room
  for (pair in may) {
    split(pair, part, SUBSEP)
    if (!(pair in used)) print "tests/rooms.txt:" row[part[1]] ": " part[1] " does not include " part[2]
  }
}
