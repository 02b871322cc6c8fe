#include "fake/foundation.h"

namespace fake {

namespace {

// Releases at its end what was autoreleased on its thread since its start.
class AutoreleasePool : public Object {
 public:
  AutoreleasePool() : Object("NSAutoreleasePool"), depth_(pool_depth()) {}
  ~AutoreleasePool() override {
    drain_pool(depth_);
  }

 private:
  size_t depth_;
};

Object* make_pool() {
  return new AutoreleasePool;
}

const Methods pool_methods("NSAutoreleasePool", {}, make_pool);

const ClassMethods string_class(
    "NSString",
    {{"stringWithCString:encoding:", method<&String::make>()}});
const Methods string_methods(
    "NSString",
    {{"UTF8String", method<&String::utf8>()},
     {"length", method<&String::length>()}});

const Methods error_methods(
    "NSError",
    {{"localizedDescription", method<&Error::description>()}});

const ClassMethods array_class(
    "NSArray",
    {{"arrayWithObjects:count:", method<&Array::make>()}});
const Methods array_methods(
    "NSArray",
    {{"objectAtIndex:", method<&Array::at>()},
     {"count", method<&Array::count>()}});

} // namespace

String* String::make(const char* text, NS::StringEncoding) {
  auto* string = new String(text);
  string->autorelease();
  return string;
}

void fail(NS::Error** error, const std::string& text) {
  if (error) {
    auto* made = new Error(text);
    made->autorelease();
    *error = reinterpret_cast<NS::Error*>(made);
  }
}

Array* Array::make(Object* const* objects, unsigned long count) {
  auto* array = new Array({objects, objects + count});
  array->autorelease();
  return array;
}

} // namespace fake
