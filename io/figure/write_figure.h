// Figures as files: SVG as it is, PDF and PNG by a program that converts.
// Invariant: the file is whole or as it was before.
#pragma once

#include <string>
#include <vector>

#include "io/figure/drawing.h"

namespace concertina {

/// Throws Error{bad_input} unless write_figure() can write `path`: its extension is one of
/// `extensions` (".svg", ".pdf", ".png", ...), a program converts to it, and a file can be made
/// there. To be asked before the work.
void require_figure(const std::string& path,
                    const std::vector<std::string>& extensions = {".svg", ".pdf", ".png"});

/// Writes `svg` as the extension of `path` says: .svg; or .pdf and .png (300 dots per inch) by
/// rsvg-convert, Inkscape or Chromium, whichever is there first. Throws Error{bad_input} for
/// another extension or where none is there, Error{failure} if the file cannot be written.
void write_figure(const std::string& path, const std::string& svg);

/// Also .tex and .html (with `note` under the drawing).
void write_figure(const std::string& path, const Drawing& drawing, const std::string& note);

}  // namespace concertina
