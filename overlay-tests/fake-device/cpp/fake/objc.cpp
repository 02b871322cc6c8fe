#include "fake/objc.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <objc/message.h>

namespace fake {

namespace {

// metal-cpp asks for classes and selectors before main(): whatever order the
// initializers run in, these are made on first use.
struct Registry {
  std::mutex mutex;
  std::unordered_set<std::string> selectors;
  std::unordered_map<std::string, ClassObject*> classes;
};

Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

std::vector<Object*>& pool() {
  static thread_local std::vector<Object*> pool;
  return pool;
}

void* answer_nil() {
  return nullptr;
}

void do_nothing(Object*, SEL) {}

Object* answer_self(Object* self, SEL) {
  return self;
}

bool responds(Object* self, SEL, SEL asked) {
  return self->isa()->find(asked) != nullptr;
}

Object* alloc(Object* self, SEL) {
  return static_cast<ClassObject*>(self)->make();
}

// What every object answers to. Labels are for Apple's debugger.
const std::unordered_map<SEL, Method>& root_methods() {
  static const std::unordered_map<SEL, Method> methods = {
      {sel_registerName("retain"), method<&Object::retain>()},
      {sel_registerName("release"), method<&Object::release>()},
      {sel_registerName("autorelease"), method<&Object::autorelease>()},
      {sel_registerName("retainCount"), method<&Object::retain_count>()},
      {sel_registerName("init"), reinterpret_cast<Method>(&answer_self)},
      {sel_registerName("alloc"), reinterpret_cast<Method>(&alloc)},
      {sel_registerName("respondsToSelector:"),
       reinterpret_cast<Method>(&responds)},
      {sel_registerName("methodSignatureForSelector:"),
       reinterpret_cast<Method>(&answer_nil)},
      {sel_registerName("label"), reinterpret_cast<Method>(&answer_nil)},
      {sel_registerName("setLabel:"), reinterpret_cast<Method>(&do_nothing)},
  };
  return methods;
}

} // namespace

Object::Object(const char* class_name) : isa_(class_named(class_name)) {}

Object* Object::retain() {
  references_++;
  return this;
}

void Object::release() {
  if (--references_ == 0) {
    delete this;
  }
}

Object* Object::autorelease() {
  pool().push_back(this);
  return this;
}

Method ClassObject::find(SEL selector) const {
  if (auto it = methods_.find(selector); it != methods_.end()) {
    return it->second;
  }
  auto it = root_methods().find(selector);
  return it == root_methods().end() ? nullptr : it->second;
}

void ClassObject::add(MethodList methods) {
  for (auto& [selector, method] : methods) {
    methods_[sel_registerName(selector)] = method;
  }
}

Object* ClassObject::make() const {
  if (!factory_) {
    fprintf(stderr, "fake device: nothing makes a %s\n", name_.c_str());
    abort();
  }
  return factory_();
}

ClassObject* class_named(const std::string& name) {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  auto& made = r.classes[name];
  if (!made) {
    made = new ClassObject(name, new ClassObject("+" + name, nullptr));
  }
  return made;
}

Methods::Methods(const char* class_name, MethodList methods, Factory make) {
  auto* c = class_named(class_name);
  c->add(methods);
  c->set_factory(make);
}

ClassMethods::ClassMethods(const char* class_name, MethodList methods) {
  const_cast<ClassObject*>(class_named(class_name)->isa())->add(methods);
}

size_t pool_depth() {
  return pool().size();
}

void drain_pool(size_t depth) {
  while (pool().size() > depth) {
    auto* object = pool().back();
    pool().pop_back();
    object->release();
  }
}

} // namespace fake

// Called by the entry points in messages_x86_64.S.
extern "C" void (*fake_find_method(fake::Object* self, SEL selector))() {
  if (!self) {
    return reinterpret_cast<fake::Method>(&fake::answer_nil);
  }
  if (auto method = self->isa()->find(selector)) {
    return method;
  }
  fprintf(
      stderr,
      "fake device: a %s was sent %s, which it does not answer\n",
      self->isa()->name().c_str(),
      reinterpret_cast<const char*>(selector));
  abort();
}

extern "C" {

Class objc_lookUpClass(const char* name) {
  return reinterpret_cast<Class>(fake::class_named(name));
}

Protocol* objc_getProtocol(const char*) {
  return nullptr;
}

SEL sel_registerName(const char* name) {
  auto& r = fake::registry();
  std::lock_guard lock(r.mutex);
  const char* stored = r.selectors.insert(name).first->c_str();
  return reinterpret_cast<SEL>(const_cast<char*>(stored));
}

} // extern "C"
