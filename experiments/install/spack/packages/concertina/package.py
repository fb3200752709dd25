"""Concertina for Spack: `spack repo add experiments/install/spack && spack dev-build concertina@0.2.0` in the top folder of the sources."""
from spack.package import *


class Concertina(MesonPackage, CudaPackage):
    """Trains transformers over elastic pipeline stages and data-parallel replicas, for research on training systems."""

    license("Apache-2.0")

    version("0.2.0")

    variant("images", default=True, description="PNG and JPEG images, and tar files of them")
    variant("sentencepiece", default=True, description="SentencePiece tokenizers")

    depends_on("cxx", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type="run")
    depends_on("mpi@3.1:")
    depends_on("onednn@2.6:")
    depends_on("random123")
    depends_on("hdf5@1.10.7:~mpi")
    depends_on("boost@1.74:")
    depends_on("cli11")
    depends_on("tomlplusplus")
    depends_on("nlohmann-json")
    depends_on("fmt@9:")
    depends_on("spdlog+fmt_external")
    depends_on("openssl")
    depends_on("xxhash")
    depends_on("utf8proc")
    depends_on("zlib-api")
    depends_on("pcre2")
    depends_on("sentencepiece", when="+sentencepiece")
    with when("+images"):
        depends_on("libarchive")
        depends_on("libpng")
        depends_on("jpeg")

    def meson_args(self):
        def feature(name, on):
            return f"-D{name}={'enabled' if on else 'disabled'}"

        images = self.spec.satisfies("+images")
        return [f"-Dmpi={self.spec['mpi'].mpicxx}", "-Dtests=false", feature("cuda", self.spec.satisfies("+cuda")),
                feature("sentencepiece", self.spec.satisfies("+sentencepiece")),
                *(feature(name, images) for name in ("libarchive", "libpng", "libjpeg"))]
