/* What fails in C++, and who owns a C object: what all of kiln.hpp is made of. */
#ifndef KILN_CPP_ERROR_HPP
#define KILN_CPP_ERROR_HPP

#include <array>
#include <exception>
#include <memory>
#include <string>

#include "kiln/status.h"

namespace kiln
{

/* What went wrong. what() is the diag's one line. */
class error : public std::exception
{
  public:
    explicit error(const kiln_diag &diag)
        : status_(diag.status), why_(diag.why), fix_(diag.fix),
          log_(diag.log != nullptr ? std::string(diag.log, diag.log_length) : std::string())
    {
        std::array<char, 2048> line{};
        (void)kiln_diag_format(&diag, line.data(), line.size());
        line_ = line[0] != '\0' ? line.data() : kiln_status_text(diag.status);
    }
    const char *what() const noexcept override
    {
        return line_.c_str();
    }
    kiln_status status() const noexcept
    {
        return status_;
    }
    const std::string &why() const noexcept
    {
        return why_;
    }
    const std::string &fix() const noexcept
    {
        return fix_;
    }
    /* The compiler's. */
    const std::string &log() const noexcept
    {
        return log_;
    }

  private:
    kiln_status status_;
    std::string line_, why_, fix_, log_;
};

/* A diag for the C calls, and what turns their answers into exceptions:
 *     kiln::check check;
 *     check(kiln_queue_finish(queue.get(), check)); */
class check
{
  public:
    check() = default;
    check(const check &) = delete;
    check &operator=(const check &) = delete;
    ~check()
    {
        kiln_diag_clear(&diag_);
    }
    operator kiln_diag *()
    {
        return &diag_;
    }
    void operator()(kiln_status status)
    {
        if (status != KILN_OK) {
            diag_.status = status;
            throw error(diag_);
        }
    }
    /* False for KILN_MISS. */
    bool found(kiln_status status)
    {
        if (status == KILN_MISS) {
            return false;
        }
        (*this)(status);
        return true;
    }

  private:
    kiln_diag diag_ = KILN_DIAG_INIT;
};

/* Owns a C object that `End` ends. */
template <typename T, void (*End)(T *)> class owner
{
  public:
    owner() = default;
    explicit owner(T *object) : object_(object)
    {
    }
    T *get() const noexcept
    {
        return object_.get();
    }
    T *release() noexcept
    {
        return object_.release();
    }
    explicit operator bool() const noexcept
    {
        return object_ != nullptr;
    }

  protected:
    struct end {
        void operator()(T *object) const
        {
            End(object);
        }
    };
    std::unique_ptr<T, end> object_;
};
} /* namespace kiln */

#endif
