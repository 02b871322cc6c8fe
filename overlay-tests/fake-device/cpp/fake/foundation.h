// The Foundation classes MLX touches.
#pragma once

#include <string>
#include <vector>

#include <Foundation/Foundation.hpp>

#include "fake/objc.h"

namespace fake {

class String : public Object {
 public:
  explicit String(std::string text) : Object("NSString"), text_(std::move(text)) {}

  static String* make(const char* text, NS::StringEncoding);
  const char* utf8() const {
    return text_.c_str();
  }
  unsigned long length() const {
    return text_.size();
  }

 private:
  std::string text_;
};

inline std::string text_of(const NS::String* string) {
  return string ? string->utf8String() : "";
}

class Error : public Object {
 public:
  explicit Error(const std::string& text)
      : Object("NSError"), text_(new String(text)) {}
  ~Error() override {
    text_->release();
  }

  String* description() const {
    return text_;
  }

 private:
  String* text_;
};

// An autoreleased error in *error, when the caller wants one.
void fail(NS::Error** error, const std::string& text);

class Array : public Object {
 public:
  explicit Array(std::vector<Object*> objects)
      : Object("NSArray"), objects_(std::move(objects)) {}

  static Array* make(Object* const* objects, unsigned long count);
  Object* at(unsigned long index) const {
    return objects_.at(index);
  }
  unsigned long count() const {
    return objects_.size();
  }

 private:
  std::vector<Object*> objects_;
};

} // namespace fake
