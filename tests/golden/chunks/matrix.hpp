#pragma once

#include <cstddef>
#include <vector>

namespace lin {

/// A dense matrix, row by row.
template <typename T>
class Matrix {
public:
    Matrix(std::size_t rows, std::size_t columns) : rows_(rows), columns_(columns), data_(rows * columns) {}

    T& at(std::size_t row, std::size_t column) { return data_[row * columns_ + column]; }

    /// The product of two matrices, the plain way: three loops, the inner one over memory that lies
    /// side by side, which is all that a small matrix needs.
    Matrix operator*(const Matrix& other) const {
        Matrix result(rows_, other.columns_);
        for (std::size_t i = 0; i < rows_; ++i) {
            for (std::size_t k = 0; k < columns_; ++k) {
                for (std::size_t j = 0; j < other.columns_; ++j) {
                    result.at(i, j) += data_[i * columns_ + k] * other.data_[k * other.columns_ + j];
                }
            }
        }
        return result;
    }

private:
    std::size_t rows_, columns_;
    std::vector<T> data_;
};

template <typename T>
T trace(Matrix<T>& matrix, std::size_t size) {
    T sum{};
    for (std::size_t i = 0; i < size; ++i) sum += matrix.at(i, i);
    return sum;
}

}  // namespace lin
