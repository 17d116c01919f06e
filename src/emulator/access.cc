#include "src/emulator/access.h"

#include "src/emulator/async.h"
#include "src/emulator/call.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

struct Place {
  Space space;
  std::uint64_t offset;
};

Place place_of(Space space, std::uint64_t address) {
  if (space != Space::kGeneric) return {space, address};
  switch (address >> kWindowShift) {
    case kSharedWindow >> kWindowShift: return {Space::kCluster, address - kSharedWindow};
    case kConstWindow >> kWindowShift: return {Space::kConst, address - kConstWindow};
    case kParamWindow >> kWindowShift: return {Space::kParam, address - kParamWindow};
    case kLocalWindow >> kWindowShift: return {Space::kLocal, address - kLocalWindow};
    default: return {Space::kGlobal, address};
  }
}

std::string_view verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead: return "reads";
    case AccessKind::kWrite: return "writes";
    case AccessKind::kAtomic: return "atomically updates";
  }
  return "";
}

void fault_access(Warp& warp, const Op& op, unsigned lane, AccessKind kind, Place at, unsigned bytes,
                  std::string_view what) {
  emulator::fault_access(warp, op, lane, verb(kind), at.space, at.offset, bytes, what);
}

bool is_shared(Space space) {
  return space == Space::kShared || space == Space::kCluster;
}

void count_traffic(Traffic& traffic, Space space, unsigned bytes, AccessKind kind) {
  if (space != Space::kGlobal && !is_shared(space)) return;
  if (kind != AccessKind::kWrite)
    (space == Space::kGlobal ? traffic.global_read : traffic.shared_read) += bytes;
  if (kind != AccessKind::kRead)
    (space == Space::kGlobal ? traffic.global_written : traffic.shared_written) += bytes;
}

bool in_bounds(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset < size && bytes <= size - offset;
}

std::byte* locate_global(Warp& warp, const Op& op, unsigned lane, Place at, unsigned bytes, AccessKind kind) {
  Allocation* a = warp.cta->launch->memory.find(at.offset, bytes, warp.cursor);
  if (!a) {
    fault_access(warp, op, lane, kind, at, bytes, "");
    return nullptr;
  }
  const std::uint64_t offset = at.offset - a->address;
  if (kind == AccessKind::kWrite) {
    a->mark_written(offset, bytes);
  } else if (!a->written(offset, bytes)) {
    fault_access(warp, op, lane, kind, at, bytes, ", which nothing has written");
    return nullptr;
  }
  return a->data.get() + offset;
}

Located locate_shared(Warp& warp, const Op& op, unsigned lane, Place at, unsigned bytes, AccessKind kind) {
  SharedMemory& shared = warp.cta->shared;
  const std::optional<std::uint64_t> place =
      shared_offset(warp, op, lane, verb(kind), at.space, at.offset, bytes);
  if (!place) return {};
  const std::uint64_t offset = *place;
  note_visit(warp, op, lane, offset);
  if (kind != AccessKind::kWrite && !shared.written(offset, bytes)) {
    fault_access(warp, op, lane, kind, at, bytes,
                 shared.marks(offset, bytes) ? warp.cta->async->describe_marks(offset, bytes)
                                             : ", which nothing has written");
    return {};
  }
  if (kind != AccessKind::kRead && shared.marks(offset, bytes)) {
    fault_access(warp, op, lane, kind, at, bytes, warp.cta->async->describe_marks(offset, bytes));
    return {};
  }
  const AccessRecord record = warp.access(op, lane, (op.flags & kStrong) != 0);
  std::optional<AccessConflict> conflict =
      kind == AccessKind::kRead ? shared.read(offset, bytes, record) : shared.write(offset, bytes, record);
  if (conflict && kind != AccessKind::kWrite) {
    fault_race(warp, op, lane, offset, bytes, kind != AccessKind::kRead, *conflict);
    return {};
  }
  return {shared.data() + offset, nullptr, conflict};
}

// The function that the lane is in, and where its frame begins in local memory.
struct Frame {
  const Function* function;
  std::uint64_t base;
};

Frame frame_at(const Warp& warp, unsigned lane) {
  const Executable& code = *warp.cta->launch->code;
  if (!warp.calls) return {code.function, 0};
  return {code.functions[warp.calls->function(code, lane)].function, warp.calls->base(lane)};
}

Located locate_local(Warp& warp, const Op& op, unsigned lane, Place at, unsigned bytes, AccessKind kind) {
  Cta& cta = *warp.cta;
  const Frame frame = frame_at(warp, lane);
  if (!in_bounds(at.offset, bytes, frame.base + frame.function->local_bytes)) {
    fault_access(warp, op, lane, kind, at, bytes, "");
    return {};
  }
  const std::uint64_t offset = warp.thread(lane) * cta.launch->code->local_bytes + at.offset;
  std::byte* written = cta.local_written.get() + offset;
  if (kind == AccessKind::kWrite) {
    std::memset(written, 1, bytes);
  } else if (!has_value(written, bytes) &&
             !has_value(written - at.offset + frame.base, frame.function->local_bytes)) {
    fault_access(warp, op, lane, kind, at, bytes, ", which nothing has written");
    return {};
  }
  return {cta.local.get() + offset, written, {}};
}

std::byte* locate_constant(Warp& warp, const Op& op, unsigned lane, Place at, unsigned bytes,
                           AccessKind kind) {
  const Launch& launch = *warp.cta->launch;
  const bool param = at.space == Space::kParam;
  if (kind != AccessKind::kRead) {
    fault_access(warp, op, lane, kind, at, bytes, ", but that space is read-only");
    return nullptr;
  }
  const std::size_t size = param ? launch.code->function->info.param_bytes : launch.constants.size();
  if (!in_bounds(at.offset, bytes, size)) {
    fault_access(warp, op, lane, kind, at, bytes, "");
    return nullptr;
  }
  const std::byte* data = param ? launch.config.params.data() : launch.constants.data();
  return const_cast<std::byte*>(data) + at.offset;  // only read; see above
}

// Where `offset` lies among things with a name, a place and a size.
struct Named {
  std::string_view name;
  std::uint64_t offset, bytes;
};

std::string describe_named(std::uint64_t offset, std::string_view kind, const std::vector<Named>& all,
                           std::uint64_t total, std::string_view total_name) {
  const Named* below = nullptr;
  for (const Named& n : all) {
    if (n.offset <= offset && (!below || n.offset >= below->offset)) below = &n;
  }
  std::string where;
  if (below && offset < below->offset + below->bytes) {
    where = str_cat(offset - below->offset, " bytes into ", kind, " '", below->name, "' (", below->bytes,
                    " bytes)");
  } else if (below) {
    where = str_cat(offset - below->offset - below->bytes, " bytes past the end of ", kind, " '", below->name,
                    "' (", below->bytes, " bytes)");
  } else {
    where = str_cat("no ", kind, " is there");
  }
  return str_cat(where, "; ", total_name, " has ", total, " bytes");
}

std::string describe_local(const Warp& warp, const Frame& frame, std::uint64_t offset) {
  std::vector<Named> all;
  for (const Variable& v : warp.cta->launch->module->variables) {
    if (v.owner == frame.function) all.push_back({v.name, frame.base + v.offset, v.bytes});
  }
  if (offset < frame.base) return "in the frame of a caller";
  return describe_named(offset, "variable", all, frame.function->local_bytes,
                        frame.function->is_entry ? "the .local space" : "the frame of the function");
}

Located locate_in(Warp& warp, const Op& op, unsigned lane, Place at, unsigned bytes, AccessKind kind) {
  switch (at.space) {
    case Space::kShared:
    case Space::kCluster: return locate_shared(warp, op, lane, at, bytes, kind);
    case Space::kConst:
    case Space::kParam: return {locate_constant(warp, op, lane, at, bytes, kind), nullptr, {}};
    case Space::kLocal: return locate_local(warp, op, lane, at, bytes, kind);
    default: return {locate_global(warp, op, lane, at, bytes, kind), nullptr, {}};
  }
}

}  // namespace

void fault_access(Warp& warp, const Op& op, unsigned lane, std::string_view verb, Space space,
                  std::uint64_t offset, std::uint64_t bytes, std::string_view what) {
  const Cta* cta = warp.cta;
  std::string other;
  if (is_shared(space)) {
    const SharedPlace place = shared_place(*cta, offset);
    if (place.rank < cta->cluster.ctas.size()) {
      offset = place.offset;
      if (place.rank != cta->rank) {
        cta = &cta->cluster.ctas[place.rank];
        other = str_cat(" of CTA ", to_string(cta->ctaid));
      }
    }
  }
  warp.fault(op, lane,
             str_cat(verb, " ", bytes, " bytes at ", name(space), " address ", hex(offset), other, what, ": ",
                     space == Space::kLocal ? describe_local(warp, frame_at(warp, lane), offset)
                                            : describe(*cta, space, offset)));
}

void fault_shared(Warp& warp, const Op& op, unsigned lane, std::string_view verb, std::uint64_t offset,
                  std::uint64_t bytes, std::string_view what) {
  const std::uint64_t stride = warp.cta->shared.stride();
  fault_access(warp, op, lane, verb, Space::kCluster, mapped(offset / stride, offset % stride), bytes, what);
}

std::optional<std::uint64_t> shared_offset(Warp& warp, const Op& op, unsigned lane, std::string_view verb,
                                           Space space, std::uint64_t address, std::uint64_t bytes) {
  Cta& own = *warp.cta;
  SharedMemory& shared = own.shared;
  const SharedPlace place = shared_place(own, address);
  const auto refuse = [&](std::string_view what) {
    fault_access(warp, op, lane, verb, space, address, bytes, what);
    return std::nullopt;
  };
  const std::size_t ctas = own.cluster.ctas.size();
  if (place.rank >= ctas)
    return refuse(ctas == 1 ? "" : str_cat(", which is of none of the ", ctas, " CTAs of the cluster"));
  if (!in_bounds(place.offset, bytes, shared.bytes())) return refuse("");
  if (place.rank != own.rank) {
    Cta& other = own.cluster.ctas[place.rank];
    if (space == Space::kShared) return refuse(", which .shared::cta does not reach; say .shared::cluster");
    if (!shared.knows_begun(warp.slot, place.rank)) {
      return refuse(", which may not have begun to run; meet it at barrier.cluster before the first access");
    }
    if (other.done()) {
      return refuse(
          ", which has exited; let all CTAs of the cluster meet at barrier.cluster before they exit");
    }
  }
  return place.rank * shared.stride() + place.offset;
}

void note_visit(Warp& warp, const Op& op, unsigned lane, std::uint64_t offset) {
  Cta& own = *warp.cta;
  if (own.cluster.ctas.size() == 1) return;
  Cta& visited = own.cluster.ctas[offset / own.shared.stride()];
  if (&visited == &own) return;
  const AccessRecord record = warp.access(op, lane, false);
  visited.visits[record.thread] = record;
}

std::string describe(const Cta& cta, Space space, std::uint64_t offset) {
  const Launch& launch = *cta.launch;
  const Function& function = *launch.code->function;
  std::vector<Named> all;
  switch (space) {
    case Space::kShared:
    case Space::kCluster:
      for (const PlacedVariable& p : launch.code->shared) {
        const Variable& v = launch.module->variables[p.variable];
        all.push_back({v.name, p.offset,
                       v.external ? launch.shared_bytes - std::min(launch.shared_bytes, p.offset) : v.bytes});
      }
      return describe_named(offset, "variable", all, launch.shared_bytes, "the CTA's shared memory");
    case Space::kParam:
      for (const ParamInfo& p : function.info.params) all.push_back({p.name, p.offset, p.size});
      return describe_named(offset, "parameter", all, function.info.param_bytes, "the parameter space");
    case Space::kConst:
      for (const Variable& v : launch.module->variables) {
        if (v.space == space) all.push_back({v.name, v.offset, v.bytes});
      }
      return describe_named(offset, "variable", all, launch.constants.size(), "the .const space");
    default: return launch.memory.describe(offset);
  }
}

Space space_of(const Op& op, std::uint64_t address) {
  const Space space = place_of(op.space, address).space;
  return is_shared(space) ? Space::kShared : space;
}

Located locate(Warp& warp, const Op& op, unsigned lane, std::uint64_t address, unsigned bytes,
               AccessKind kind) {
  const Place at = place_of(op.space, address);
  if (at.offset & (bytes - 1)) {
    fault_access(warp, op, lane, kind, at, bytes, str_cat(", which is not a multiple of ", bytes));
    return {};
  }
  count_traffic(warp.cta->traffic, at.space, bytes, kind);
  if (!(op.flags & kStrong) || !warp.cta->launch->options.check_races)
    return locate_in(warp, op, lane, at, bytes, kind);
  // Flags and locks: what precedes a release (or a fence and a strong write) happens before what follows the
  // acquire that sees it.
  SharedMemory& shared = warp.cta->shared;
  const bool fenced = warp.cta->launch->code->has_fence;
  const SharedPlace place = shared_place(*warp.cta, at.offset);
  const std::uint64_t key =
      window(at.space) + (is_shared(at.space) ? place.rank * shared.stride() + place.offset : at.offset);
  if (kind != AccessKind::kWrite && (fenced || (op.flags & kAcquire))) shared.acquire(warp.slot, key);
  const Located located = locate_in(warp, op, lane, at, bytes, kind);
  if (kind != AccessKind::kRead && (fenced || (op.flags & kRelease))) shared.release(warp.slot, key);
  return located;
}

void fault_race(Warp& warp, const Op& op, unsigned lane, std::uint64_t offset, std::uint64_t bytes,
                bool writes, const AccessConflict& conflict) {
  const Cluster& cluster = warp.cta->cluster;
  const AccessRecord& earlier = conflict.earlier;
  const std::string who =
      earlier.asynchronous ? std::string("an asynchronous copy") : cluster.name_thread(earlier.thread);
  const Cta& cta = cluster.ctas[offset / cluster.shared.stride()];
  const std::uint64_t address = offset % cluster.shared.stride();
  warp.fault(
      op, lane,
      str_cat("race in shared memory: ", writes ? "writes " : "reads ", bytes, " bytes at shared address ",
              hex(address), &cta == warp.cta ? "" : str_cat(" of CTA ", to_string(cta.ctaid)), ", which ",
              who, conflict.earlier_writes ? " wrote" : " read", " at ",
              line_of(*cluster.launch, earlier.instruction), ", with no ",
              earlier.asynchronous ? "wait" : "barrier",
              " between the two: ", describe(cta, Space::kShared, address)));
}

std::uint32_t decode_semantics(Decoder& d) {
  std::uint32_t flags = 0;
  switch (d.accept_one({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"})) {
    case 1:
    case 2: flags = kStrong; break;
    case 3: flags = kStrong | kAcquire; break;
    case 4: flags = kStrong | kRelease; break;
    case 5: flags = kStrong | kAcquire | kRelease; break;
    default: break;
  }
  d.accept("mmio");
  d.accept_one({"cta", "cluster", "gpu", "sys"});
  return flags;
}

bool decode_cache_hints(Decoder& d) {
  d.accept_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  d.accept_one(
      {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  d.accept_one({"L2::evict_normal", "L2::evict_first", "L2::evict_last"});
  d.accept_one({"L2::64B", "L2::128B", "L2::256B"});
  return d.accept("L2::cache_hint");
}

void set_address(Op& op, const AddressOperand& address, Space space) {
  op.space = space;
  op.wide_address = address.wide;
  op.immediate = static_cast<std::uint64_t>(address.offset);
}

void set_access(Op& op, const AddressOperand& address, Space space, AccessKind kind, unsigned bytes) {
  set_address(op, address, space);
  op.access = kind;
  op.access_bytes = static_cast<std::uint8_t>(bytes);
}

void note_access(Decoder& d, Space space, unsigned bytes) {
  if (is_shared(space) || space == Space::kGeneric) d.shared_access(bytes);
}

}  // namespace ptxgen::emulator
