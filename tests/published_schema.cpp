// Needs valijson (Debian: libvalijson-dev).
#include "published_schema.hpp"

#include <fmt/ranges.h>

#include <fstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "test_places.hpp"

namespace parity::test {

std::string schema_complaint(const std::string& name, const nlohmann::json& document) {
  std::ifstream file(PARITY_SOURCE_DIR "/reports/" + name + ".schema.json");
  const nlohmann::json text = nlohmann::json::parse(file);
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::ValidationResults results;
  if (valijson::Validator().validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results)) return "";
  valijson::ValidationResults::Error error;
  results.popError(error);
  return fmt::format("{}: {}", fmt::join(error.context, ""), error.description);
}

}  // namespace parity::test
