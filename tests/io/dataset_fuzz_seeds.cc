// Sound files of each format of data, as bytes.
#include "io/images/image_codec.h"
#include "io/images/tar_shard.h"
#include "tests/io/fuzz_seeds.h"
#include "tests/io/token_files.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

std::string gzipped(const std::string& content) {
  const Folder folder;
  gzip(folder.path("a"), content);
  return slurp(folder.path("a"));
}

std::string token_file(std::uint64_t vocabulary) {
  const Folder folder;
  write_token_file(folder.path("a"), vocabulary, std::string(64, 'a'), {1, 50000, 3, 4, 5, 6, 7},
                   {0, 2, 7});
  return slurp(folder.path("a"));
}

DataOptions of_format(const std::string& format) {
  DataOptions options;
  options.format = format;
  options.validation = 0;
  options.tokens_per_sample = 3;
  options.options["windows"] = "fixed";
  options.vocabulary = 50257;
  return options;
}

/// What stands beside the first file is found by its name, but for idx files.
FuzzSeed dataset_seed(const std::string& name, const DataOptions& options,
                      const std::vector<std::string>& names,
                      const std::vector<std::string>& contents) {
  FuzzSeed seed;
  seed.name = name;
  seed.names = names;
  seed.contents = contents;
  seed.refuses = options.format != "text";  // any bytes are text
  seed.read = [options, names](const Folder& folder) {
    DataOptions of_folder = options;
    for (std::size_t f = 0; f < (options.format == "mnist" ? names.size() : 1); ++f)
      of_folder.files.push_back(folder.path(names[f]));
    read_all(*open_dataset(of_folder));
  };
  return seed;
}

/// One file that all of its format reads.
FuzzSeed seed_of(const std::string& name, const std::string& format, const std::string& file,
                 const std::string& content) {
  return dataset_seed(name, of_format(format), {file}, {content});
}

/// As windows_of(), of such targets.
FuzzSeed targets_of(const std::string& name, const std::string& format, TargetKind kind,
                    const std::string& content) {
  DataOptions options = of_format(format);
  options.tokens_per_sample = 9;
  options.targets = kind;
  return dataset_seed(name, options, {"a." + format}, {content});
}

/// As seed_of(), of texts in windows of so many tokens.
FuzzSeed windows_of(const std::string& name, const std::string& format, const std::string& file,
                    std::int64_t tokens, const std::string& content) {
  DataOptions options = of_format(format);
  options.tokens_per_sample = tokens;
  options.options["stride"] = 4;
  return dataset_seed(name, options, {file}, {content});
}

/// Two classes of an image each, turned by Exif, scaled and augmented.
FuzzSeed image_folder_seed() {
  FuzzSeed seed;
  seed.name = "image_folder";
  seed.names = {"a.png", "b.jpg"};
  seed.contents = {with_chunk(png(4, 3, 2, ramp(36)), "eXIf", exif(6)),
                   with_exif(colour_jpeg(), 3)};
  seed.read = [names = seed.names](const Folder& folder) {
    for (const std::string& name : names) {
      const std::string of_class = folder.path("root/" + name.substr(0, 1));
      std::filesystem::create_directories(of_class);
      spill(of_class + "/" + name, slurp(folder.path(name)));
    }
    DataOptions options = of_format("image-folder");
    options.files = {folder.path("root")};
    options.options = {{"size", 5},    {"resize", 6},    {"crop", 1},
                       {"flip", true}, {"rotate", 20.0}, {"randaugment", 3}};
    read_all(*open_dataset(options));
  };
  return seed;
}

/// As seed_of(), of documents that are rows.
FuzzSeed documents_of(const std::string& name, const std::string& format, const std::string& file,
                      const std::string& content, const std::string& documents = "joined") {
  DataOptions options = of_format(format);
  options.documents = documents;
  options.labelled = false;
  return dataset_seed(name, options, {file}, {content});
}

}  // namespace

/// A new format adds its line here.
std::vector<FuzzSeed> dataset_seeds() {
  const std::string images = idx(0x803, {5, 2, 3}, ramp(30));
  const std::string labels = idx(0x801, {5}, std::string("\x00\x09\x03\x03\x01", 5));
  const std::string ids = little_endian(std::vector<std::uint16_t>{1, 50000, 3, 4, 5, 6, 7});
  const std::string wide = little_endian(std::vector<std::int32_t>{1, 50000, 3, 4, 5, 6, 7});
  const auto mnist = [&](const std::string& name, const std::string& first,
                         const std::string& second) {
    return dataset_seed(name, of_format("mnist"), {"images", "labels"}, {first, second});
  };
  FuzzSeed megatron = seed_of("megatron", "tokens", "train.bin", ids);
  megatron.names.emplace_back("train.idx");
  megatron.contents.push_back(MegatronIndex().text());
  FuzzSeed packed_megatron = documents_of("megatron_packed", "tokens", "train.bin", ids, "packed");
  packed_megatron.names.emplace_back("train.idx");
  packed_megatron.contents.push_back(MegatronIndex().text());
  FuzzSeed names = seed_of("cifar10_with_names", "cifar10", "batch.bin", cifar_record("\x07", 1));
  names.names.emplace_back("batches.meta.txt");
  names.contents.emplace_back("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  std::vector<FuzzSeed> seeds{
      seed_of("text", "text", "a.txt", "To be, or not to be: that is the question.\n"),
      seed_of("nanogpt", "tokens", "train.bin", ids),
      seed_of("llmc_16_bit", "tokens", "train.bin", llmc(20240520, 1, 7, ids)),
      seed_of("llmc_32_bit", "tokens", "train.bin", llmc(20240801, 7, 7, wide)),
      megatron,
      seed_of("token_file_16_bit", "tokens", "train.tok", token_file(50257)),
      seed_of("token_file_32_bit", "tokens", "train.tok", token_file(100000)),
      mnist("mnist", images, labels),
      mnist("mnist_gz", gzipped(images), gzipped(labels)),
      names,
      seed_of("cifar100", "cifar100", "train.bin", cifar_record("\x13\x63", 1)),
      seed_of("cifar100_coarse_gz", "cifar100-coarse", "train.bin",
              gzipped(cifar_record("\x13\x63", 1))),
      windows_of("tsv", "tsv", "a.tsv", 8,
                 "sentence\tlabel\ngood\t1\nbad \t0\nvery, very long\t1\n"),
      windows_of("tsv_pairs", "tsv", "a.tsv", 9,
                 "idx\tsentence1\tlabel\tsentence2\r\n0\tabcdef\tno\txy\r\n1\tab\tyes\tc"),
      windows_of("tsv_quoted", "tsv", "a.tsv", 9,
                 "\"text\"\t\"label\"\n\"a\t\"\"b\"\"\"\tno\n\"two\r\nlines\"\t\"yes\"\r\n"),
      windows_of("tsv_cola", "tsv", "a.tsv", 9, "gj04\t1\t\tIt is so.\ngj04\t0\t*\tIt so is.\n"),
      windows_of("csv", "csv", "a.csv", 9,
                 "\xef\xbb\xbf"
                 "id,question1,question2,is_duplicate\n1,\"a, \"\"b\"\"\",c,0\n\n2,\"d\n\",,1\n"),
      windows_of("jsonl", "jsonl", "a.jsonl", 9,
                 "{\"text\": \"a \\u00fc\", \"label\": 1, \"more\": [1, {}]}\n\n{\"label\": 0.0, "
                 "\"text\": \"b\"}\n"),
      documents_of("csv_documents", "csv", "a.csv",
                   "text,id\n\"To be, \"\"or\"\"\nnot\",1\n,2\nto be,3\n"),
      documents_of("jsonl_documents", "jsonl", "a.jsonl",
                   "{\"text\": \"a \\u00fc\", \"score\": 1}\n\n{\"text\": \"bcd\"}\n"),
      targets_of("tsv_scores", "tsv", TargetKind::scores,
                 "sentence1\tsentence2\tscore\na\tb\t3.800\nc\td\t-1e-3\n"),
      targets_of(
          "jsonl_scores", "jsonl", TargetKind::scores,
          "{\"text\": \"a\", \"label\": [1, 0.5]}\n{\"text\": \"b\", \"label\": [-2, 3e1]}\n"),
      targets_of("csv_labels", "csv", TargetKind::labels,
                 "text,labels\na,\"x, y\"\nb,\nc,\"[\"\"x\"\"]\"\n"),
      targets_of("jsonl_labels", "jsonl", TargetKind::labels,
                 "{\"text\": \"a\", \"labels\": [1, 0]}\n{\"text\": \"b\", \"labels\": []}\n"),
      targets_of("conll", "conll", TargetKind::tags,
                 "-DOCSTART- -X- O O\n\nJohn NNP I-NP B-PER\nlives V I-VP O\r\n\nin P I-PP O\n"),
      targets_of("jsonl_tags", "jsonl", TargetKind::tags,
                 "{\"tokens\": [\"a\", \"bc\"], \"ner_tags\": [0, 1]}\n"),
      documents_of("csv_packed", "csv", "a.csv", "text\nTo be\n\"or\nnot\"\nto be\n", "packed"),
      documents_of("token_file_packed", "tokens", "train.tok", token_file(50257), "packed"),
      packed_megatron,
      windows_of("squad", "squad", "s.json", 68, squad_json("river Rhine", 15)),
  };
  if (has_libarchive() && png_codec().available() && jpeg_codec().available()) {
    const std::string shard = tar(three_samples());
    seeds.push_back(seed_of("webdataset", "webdataset", "s.tar", shard));
    seeds.push_back(seed_of("webdataset_gz", "webdataset", "s.tar", gzipped(shard)));
    seeds.push_back(image_folder_seed());
  }
  return seeds;
}

}  // namespace concertina
