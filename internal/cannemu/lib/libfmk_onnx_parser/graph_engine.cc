// The part of the graph engine that ONNX Runtime's CANN provider calls: parse an ONNX model, build an .om of it
// for given shapes, save it. Building is left to the emulator's atc, which a user would run by hand.
//
// Clients were compiled against the vendor's classes, so names and layouts are fixed: a string and a graph are
// one shared pointer each, a built model is a shared pointer and a length.

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "emulator.h"

extern char **environ;

namespace ge {

using graphStatus = uint32_t;

class ACL_API AscendString {
 public:
  explicit AscendString(const char *text);
  bool operator<(const AscendString &other) const;
  __attribute__((visibility("hidden"))) const std::string &text() const;

 private:
  std::shared_ptr<std::string> text_;
};

using Options = std::map<AscendString, AscendString>;

struct GraphImpl;

class ACL_API Graph {
 public:
  explicit Graph(const char *name);

  std::shared_ptr<GraphImpl> impl;
};

struct ModelBufferData {
  std::shared_ptr<uint8_t> data;
  uint64_t length = 0;
};

// What a graph is here: the bytes it was parsed from.
struct GraphImpl {
  std::string name;
  std::string onnx;
};

static_assert(sizeof(AscendString) == 16 && sizeof(Graph) == 16, "clients copy and destroy these by themselves");
static_assert(sizeof(ModelBufferData) == 24 && offsetof(ModelBufferData, length) == 16, "clients read these by themselves");

ACL_API graphStatus aclgrphParseONNXFromMem(const char *bytes, size_t size, const Options &options, Graph &graph);
ACL_API graphStatus aclgrphBuildInitialize(Options &options);
ACL_API graphStatus aclgrphBuildModel(const Graph &graph, const Options &options, ModelBufferData &model);
ACL_API graphStatus aclgrphSaveModel(const char *path, const ModelBufferData &model);
ACL_API void aclgrphBuildFinalize();

// ---- strings and graphs ----

AscendString::AscendString(const char *text) : text_(text ? std::make_shared<std::string>(text) : nullptr) {}

const std::string &AscendString::text() const {
  static const std::string empty;
  return text_ ? *text_ : empty;
}

bool AscendString::operator<(const AscendString &other) const { return text() < other.text(); }

Graph::Graph(const char *name) : impl(std::make_shared<GraphImpl>(GraphImpl{name ? name : "", ""})) {}

// ---- options of all builds ----

namespace {

enum : graphStatus { SUCCESS = 0, FAILED = 0xffffffff };

// What aclgrphBuildInitialize says, in atc's words.
const std::map<std::string, std::string> option_flags = {
    {"ge.socVersion", "--soc_version"},
    {"ge.exec.precision_mode", "--precision_mode"},
    {"ge.opSelectImplmode", "--op_select_implmode"},
    {"ge.optypelistForImplmode", "--optypelist_for_implmode"},
    {"input_shape", "--input_shape"},
    {"input_format", "--input_format"},
};

struct State {
  std::mutex lock;
  std::vector<std::string> arguments;
  bool initialized = false;
};

// Made at first use and never destroyed: clients call until the very end of their process.
State &state() {
  static State *const only = new State;
  return *only;
}

graphStatus failed(const std::string &why) {
  npuctl_emulator_fail(ACL_ERROR_GE_FAILURE, "%s", why.c_str());
  return FAILED;
}

void add_arguments(const Options &options, std::vector<std::string> &arguments) {
  for (const auto &option : options) {
    auto flag = option_flags.find(option.first.text());
    if (flag != option_flags.end() && !option.second.text().empty()) arguments.push_back(flag->second + "=" + option.second.text());
  }
}

// ---- running atc ----

// A folder that goes away with everything in it.
class Folder {
 public:
  Folder() {
    const char *parent = getenv("TMPDIR");
    std::string pattern = std::string(parent && *parent ? parent : "/tmp") + "/npuctl-emulator-XXXXXX";
    std::vector<char> path(pattern.c_str(), pattern.c_str() + pattern.size() + 1);
    if (mkdtemp(path.data()) != nullptr) path_ = path.data();
  }
  ~Folder() {
    if (path_.empty()) return;
    for (const char *name : {"model.onnx", "model.om", "model_linux_x86_64.om", "model_linux_aarch64.om", "output"}) unlink(file(name).c_str());
    rmdir(path_.c_str());
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  bool made() const { return !path_.empty(); }
  const std::string &path() const { return path_; }
  std::string file(const char *name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

bool read_file(const std::string &path, std::string &bytes) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  bytes.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  return true;
}

bool write_file(const std::string &path, const char *bytes, size_t size) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes, static_cast<std::streamsize>(size));
  out.close();
  return out.good();
}

// The emulator's own atc lies in the folder bin beside the one of this library.
std::string find_atc() {
  const char *named = getenv("NPUCTL_EMULATOR_ATC");
  if (named && *named) return named;
  Dl_info info;
  std::string own;
  if (dladdr(reinterpret_cast<void *>(&aclgrphBuildFinalize), &info) != 0 && info.dli_fname) {
    own = info.dli_fname;
    size_t slash = own.rfind('/');
    own = (slash == std::string::npos ? std::string(".") : own.substr(0, slash)) + "/../bin/atc";
    if (access(own.c_str(), X_OK) == 0) return own;
  }
  const char *home = getenv("ASCEND_HOME_PATH");
  return home && *home ? std::string(home) + "/bin/atc" : own;
}

// Runs a program with its output in a file. Returns its exit code, or -1.
int run(const std::vector<std::string> &arguments, const std::string &output, const std::string &folder) {
  std::vector<char *> pointers;
  for (const std::string &argument : arguments) pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  // What atc leaves behind where it runs goes away with the folder's files, or stays in a temporary place.
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child;
  int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

graphStatus build(const GraphImpl &graph, const Options &options, ModelBufferData &model) {
  Folder folder;
  if (!folder.made()) return failed("cannot make a temporary folder");
  if (!write_file(folder.file("model.onnx"), graph.onnx.data(), graph.onnx.size())) return failed("cannot write the model for atc");
  std::vector<std::string> arguments = {find_atc(), "--framework=5", "--model=" + folder.file("model.onnx"), "--output=" + folder.file("model")};
  {
    std::lock_guard<std::mutex> hold(state().lock);
    arguments.insert(arguments.end(), state().arguments.begin(), state().arguments.end());
  }
  add_arguments(options, arguments);
  int code = run(arguments, folder.file("output"), folder.path());
  std::string said, bytes;
  read_file(folder.file("output"), said);
  if (code != 0) return failed(arguments[0] + " failed: " + (said.size() > 600 ? said.substr(said.size() - 600) : said));
  for (const char *name : {"model.om", "model_linux_x86_64.om", "model_linux_aarch64.om"}) {
    if (!read_file(folder.file(name), bytes)) continue;
    model.data = std::shared_ptr<uint8_t>(new uint8_t[bytes.size() + 1], std::default_delete<uint8_t[]>());
    memcpy(model.data.get(), bytes.data(), bytes.size());
    model.length = bytes.size();
    return SUCCESS;
  }
  return failed(arguments[0] + " left no model");
}

// No exception may leave a call of the interface.
template <typename Call>
graphStatus guarded(const char *function, Call call) {
  npuctl_emulator_enter(function);
  try {
    return call();
  } catch (const std::exception &error) {
    return failed(error.what());
  }
}

}  // namespace

// ---- the calls ----

graphStatus aclgrphParseONNXFromMem(const char *bytes, size_t size, const Options &, Graph &graph) {
  return guarded(__func__, [&] {
    if (bytes == nullptr || size == 0 || size > INT_MAX) return failed("there is no model of this size");
    if (!graph.impl) return failed("the graph is empty");
    graph.impl->onnx.assign(bytes, size);
    return static_cast<graphStatus>(SUCCESS);
  });
}

graphStatus aclgrphBuildInitialize(Options &options) {
  return guarded(__func__, [&] {
    std::lock_guard<std::mutex> hold(state().lock);
    state().arguments.clear();
    add_arguments(options, state().arguments);
    state().initialized = true;
    return static_cast<graphStatus>(SUCCESS);
  });
}

graphStatus aclgrphBuildModel(const Graph &graph, const Options &options, ModelBufferData &model) {
  return guarded(__func__, [&] {
    {
      std::lock_guard<std::mutex> hold(state().lock);
      if (!state().initialized) return failed("aclgrphBuildInitialize has not been called");
    }
    if (!graph.impl || graph.impl->onnx.empty()) return failed("the graph was not parsed from a model");
    return build(*graph.impl, options, model);
  });
}

// The client holds a lock on the very file, so it is written in place.
graphStatus aclgrphSaveModel(const char *path, const ModelBufferData &model) {
  return guarded(__func__, [&] {
    if (path == nullptr || !model.data || model.length == 0) return failed("there is nothing to save");
    std::string name = path;
    if (name.size() < 3 || name.compare(name.size() - 3, 3, ".om") != 0) name += ".om";
    if (!write_file(name, reinterpret_cast<const char *>(model.data.get()), model.length)) return failed("cannot write " + name);
    return static_cast<graphStatus>(SUCCESS);
  });
}

void aclgrphBuildFinalize() {
  std::lock_guard<std::mutex> hold(state().lock);
  state().initialized = false;
}

}  // namespace ge
