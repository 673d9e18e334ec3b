#include "pair/tokens.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "pair/limits.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

// What the field calls the same thing. Left: whole components in lower case, words joined by '_', without trailing
// numbers; right: the words used here. From transformers, diffusers, timm, the Wan and SkyReels-V2 originals, nanoGPT,
// llama.cpp's and flax's models.
constexpr std::array kSynonyms{
    std::pair{"blocks block layers layer h transformer_blocks encoder_block encoderblock decoder_block hidden_layers "
              "resblocks transformer_block",
              "block"},
    std::pair{"self_attn attn self_attention attention selfattention sa multi_head_attention multihead_attention mha "
              "scaled_dot_product_attention scaled_dot_product_flash_attention scaled_dot_product_efficient_attention "
              "scaled_dot_product_flash_attention_for_cpu scaled_dot_product_cudnn_attention sdpa",
              "attn self"},
    std::pair{"cross_attn cross_attention crossattention crossattn enc_dec_attention encdecattention ca xattn "
              "encoder_attn",
              "attn cross"},
    std::pair{"q query to_q q_proj wq q_lin query_proj linear_q proj_q c_q", "q"},
    std::pair{"k key to_k k_proj wk k_lin key_proj linear_k proj_k c_k", "k"},
    std::pair{"v value to_v v_proj wv v_lin value_proj linear_v proj_v c_v", "v"},
    std::pair{"k_img add_k_proj", "k image"},
    std::pair{"v_img add_v_proj", "v image"},
    std::pair{"norm_added_k norm_k_img", "norm k image"},
    std::pair{"qkv to_qkv c_attn qkv_proj query_key_value in_proj wqkv w_qkv", "qkv"},
    std::pair{"o to_out o_proj out_proj wo out_lin attn_out linear_o proj_o out", "o"},
    std::pair{"q_norm norm_q ln_q q_layernorm", "norm q"},
    std::pair{"k_norm norm_k ln_k k_layernorm", "norm k"},
    std::pair{"ffn mlp ff feed_forward feedforward fc_block", "ffn"},
    std::pair{"up_proj c_fc fc_in w_in dense_h_to_4_h wi intermediate", "up"},
    std::pair{"down_proj fc_out w_out dense_4_h_to_h", "down"},
    std::pair{"gate_proj w_gate", "gate"},
    std::pair{"input_layernorm attention_norm pre_attention_norm attn_norm pre_norm layer_norm_before", "norm 1"},
    std::pair{"post_attention_layernorm ffn_norm pre_mlp_norm mlp_norm layer_norm_after", "norm 2"},
    std::pair{"norm ln layernorm layer_norm rmsnorm rms_norm", "norm"},
    std::pair{"ln_f final_norm norm_out final_layer_norm norm_f final_layernorm head_norm", "norm head"},
    std::pair{"embedding embedder embeddings emb embed embeds", "embed"},
    std::pair{"wte tok_embeddings embed_tokens word_embeddings token_embedding", "embed token"},
    std::pair{"wpe position_embeddings pos_embed position_embedding", "embed position"},
    std::pair{"time_embedder time_embedding time_embed timestep_embedder t_embedder", "embed time"},
    std::pair{"text_embedder text_embedding text_proj caption_projection", "embed text"},
    std::pair{"image_embedder img_emb image_embedding", "embed image"},
    std::pair{"patch_embedding patch_embed x_embedder proj_in", "embed patch"},
    std::pair{"time_proj time_projection", "proj time"},
    std::pair{"lm_head head proj_out classifier output_head", "head"},
    std::pair{"img image", "image"},
    std::pair{"act activation act_fn nonlinearity", "act"},
    std::pair{"freqs rope rotary rotary_emb rotary_embedding", "rope"},
    std::pair{"linear dense fc lin", "linear"},
};
constexpr std::array kSayLittle{"model", "transformer", "module",  "net",  "base", "condition", "params",
                                "proj",  "linear",      "encoder", "flax", "root", "self"};

// Runs of components that number the same steps in another way: diffusers' FeedForward holds the projection inside its
// activation, others list projection, activation, projection.
constexpr std::array kSequentials{std::pair{".net.0.proj", ".0"}, std::pair{".net.0", ".1"}, std::pair{".net.2", ".2"}};

std::string renumbered(std::string_view path) {
  std::string text(path);
  for (const auto& [from, to] : kSequentials)
    if (const size_t at = text.find(from); at != std::string::npos)
      return text.replace(at, std::string(from).size(), to);
  return text;
}

const std::unordered_map<std::string, std::vector<std::string>>& synonyms() {
  static const auto table = [] {
    std::unordered_map<std::string, std::vector<std::string>> made;
    for (const auto& [names, words] : kSynonyms) {
      std::istringstream split_words{words}, split_names{names};
      std::vector<std::string> list;
      for (std::string word; split_words >> word;) list.push_back(word);
      for (std::string name; split_names >> name;) made.emplace(name, list);
    }
    return made;
  }();
  return table;
}

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// "SelfAttention" -> "self_attention", "RMSNorm" -> "rms_norm", "norm1" -> "norm_1".
std::string snake(std::string_view name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!std::isalnum(static_cast<unsigned char>(c))) {
      if (!text.empty() && text.back() != '_') text += '_';
      continue;
    }
    const bool camel =
        i > 0 && upper(c) &&
        (!upper(name[i - 1]) || (i + 1 < name.size() && std::islower(static_cast<unsigned char>(name[i + 1]))));
    const bool number = i > 0 && digit(c) != digit(name[i - 1]);
    if ((camel || number) && !text.empty() && text.back() != '_') text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  while (!text.empty() && text.back() == '_') text.pop_back();
  return text;
}

// Words of one component: the longest known runs first, whatever is left as it stands.
std::vector<std::string> words_of(const std::string& component) {
  std::vector<std::string> parts, words;
  std::istringstream split(component);
  for (std::string part; std::getline(split, part, '_');) parts.push_back(part);
  for (size_t begin = 0; begin < parts.size();) {
    size_t end = parts.size();
    for (; end > begin; --end) {
      std::string run = parts[begin];
      for (size_t i = begin + 1; i < end; ++i) run += "_" + parts[i];
      const auto known = synonyms().find(run);
      if (known == synonyms().end()) continue;
      words.insert(words.end(), known->second.begin(), known->second.end());
      break;
    }
    if (end == begin) words.push_back(parts[end++]);
    // diffusers and the like number kinds of attention: attn1 looks at itself, attn2 at the text
    if (parts[begin] == "attn" && end < parts.size() && (parts[end] == "1" || parts[end] == "2")) {
      if (parts[end] == "2") words.back() = "cross";
      ++end;
    }
    begin = end;
  }
  return words;
}

double weight_of(const std::string& word) {
  const NameLimits& limits = kPairLimits.name;
  if (digit(word[0])) return limits.of_number;
  return std::find(kSayLittle.begin(), kSayLittle.end(), word) == kSayLittle.end() ? 1 : limits.of_filler.value;
}

double shared(const std::vector<NameTokens::Token>& a, const std::vector<NameTokens::Token>& b) {
  double both = 0, all = 0;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].text < b[j].text)) {
      all += a[i++].weight;
    } else if (i == a.size() || b[j].text < a[i].text) {
      all += b[j++].weight;
    } else {
      both += a[i].weight, all += a[i].weight;
      ++i, ++j;
    }
  }
  return all > 0 ? both / all : 0;
}

}  // namespace

NameTokens name_tokens(std::string_view given) {
  const std::string path = renumbered(given);
  NameTokens tokens;
  tokens.op = is_op_path(path);
  std::vector<std::vector<std::string>> components;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find_first_of("./[", begin), path.size());
    if (end > begin) components.push_back(words_of(snake(std::string_view(path).substr(begin, end - begin))));
    begin = end + 1;
  }
  bool after_block = false;
  for (auto& component : components) {
    std::vector<std::string> kept;
    for (const std::string& word : component) {
      if (after_block && digit(word[0]) && word.size() < 9) {
        tokens.blocks.push_back(std::stoi(word));
        after_block = false;
        continue;
      }
      after_block = word == "block";
      kept.push_back(word);
      tokens.words.push_back({word, weight_of(word)});
      tokens.shape += word + ' ';
    }
    component = kept;
  }
  double told = 0;  // the leaf: components from the end until one says something
  for (size_t c = components.size(); c-- > 0 && told < 1;)
    for (const std::string& word : components[c]) {
      tokens.leaf.push_back({word, weight_of(word)});
      told += weight_of(word);
    }
  std::sort(tokens.words.begin(), tokens.words.end());
  std::sort(tokens.leaf.begin(), tokens.leaf.end());
  return tokens;
}

double name_similarity(const NameTokens& a, const NameTokens& b) {
  if (a.words.empty() && b.words.empty()) return 1;  // both the root's result
  const double all = kPairLimits.name.all_words;
  return all * shared(a.words, b.words) + (1 - all) * shared(a.leaf, b.leaf);
}

}  // namespace parity
