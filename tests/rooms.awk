# Holds the includes of a tree to its table of rooms (tests/rooms.txt); prints a line per fault.
# usage: awk -f rooms.awk ROOMS_TXT FILE...   (files by their path from the top of the tree)
# A room is a folder. A line "room: a b" says that files of room may include headers of a and b,
# besides the room's own and those of core, core/model and core/text; rooms of experiments also
# include any room of the other tops. A room has at most 50 files and 5,000 lines.
# A folder without a line, a line without a folder, an include
# that its line does not name, and a name that nothing needs are faults.
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
    if (files[room] > 50) print room ": " files[room] " files; a room of more than 50 splits"
    if (lines[room] > 5000) print room ": " lines[room] " lines; a room of more than 5,000 splits"
  }
  for (room in row) if (!(room in seen)) print "tests/rooms.txt:" row[room] ": there is no folder " room
  for (pair in may) {
    split(pair, part, SUBSEP)
    if (!(pair in used)) print "tests/rooms.txt:" row[part[1]] ": " part[1] " does not include " part[2]
  }
}
