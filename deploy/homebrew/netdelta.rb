# The formula by which Homebrew on Linux installs netdelta. `make dist` writes the version, the addresses and the checksums into it.
class Netdelta < Formula
  desc "Measure what a container network costs a workload"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "Apache-2.0"

  depends_on :linux

  on_intel do
    url "@URL_amd64@"
    sha256 "@SHA256_amd64@"
  end
  on_arm do
    url "@URL_arm64@"
    sha256 "@SHA256_arm64@"
  end

  def install
    bin.install "netdelta", "netdelta-agent", "completions/kubectl_complete-netdelta"
    bin.install_symlink bin/"netdelta" => "kubectl-netdelta"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/netdelta.bash" => "netdelta"
    zsh_completion.install "completions/_netdelta"
    fish_completion.install "completions/netdelta.fish"
    doc.install "README.md", "CHANGELOG.md", "licenses", "sbom.cdx.json"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/netdelta version")
  end
end
