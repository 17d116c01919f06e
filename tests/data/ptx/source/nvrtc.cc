// nvrtc_ptx FILE.cu compute_89 [option...]: prints what NVRTC makes of the file.
#include <nvrtc.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::ifstream file(argv[1]);
  const std::string source((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> options = {"-arch=" + std::string(argv[2]), "-std=c++17", "-device-int128"};
  for (int i = 3; i < argc; ++i) options.emplace_back(argv[i]);
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  nvrtcProgram program;
  nvrtcCreateProgram(&program, source.c_str(), argv[1], 0, nullptr, nullptr);
  const nvrtcResult result = nvrtcCompileProgram(program, static_cast<int>(texts.size()), texts.data());
  std::size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  std::string text(size, '\0');
  nvrtcGetProgramLog(program, text.data());
  if (result != NVRTC_SUCCESS) {
    std::cerr << text;
    return 1;
  }
  nvrtcGetPTXSize(program, &size);
  text.assign(size, '\0');
  nvrtcGetPTX(program, text.data());
  text.resize(size - 1);
  std::cout << text;
}
