// Every number that decides which tensor of one program is which of another, each with what it follows from.
//
// They were set by hand on recordings of Wan and on made-up lists (tests/compare_pairing_test.cpp); how far each may
// move was not measured. tests/compare_pairing_held_out_test.cpp holds them on pairs of the self test that were not
// looked at when they were set: GPT-2 without names and under others, Wan without names.
#pragma once
#include "core/limit.hpp"

namespace parity {

/// Contents of two tensors, as `content_distance` measures them (about the relative L2 difference).
struct ContentLimits {
  Constant same{.05, "noise that a bf16 run gathers over tens of roundings of 2^-9: up to it contents agree"};
  Constant unlike{.7, "1 / sqrt(2): half of the squared difference is something else"};
  Constant few_values{2, "a mask has two values: agreement is worth nothing"};
  Constant enough_values{10, "different values among 32 samples from which agreement is worth all"};
  Constant correlation{.6, "of 32 samples: unrelated ones exceed it once in ten thousand times"};
  Constant no_layout{.9, "a reading that explains less than a fifth of the squares says nothing of the layout"};
  Constant step{1e-4, "of distance, for each rearrangement: of readings that agree alike the plainest is taken"};
  Constant part_steps{2, "rearrangements that taking a part counts as"};
  Constant permuted_steps{1.5, "the same of exchanging axes: between a reshape (1) and a part"};
  Constant most_links{24, "links by content of one candidate tensor: blocks of a model repeat contents so often"};
  Constant axes_of_taste{4, "from as many on the order of axes is a matter of taste (a convolution's)"};
  Constant shapes_tell{3, "tensors, all of as many axes, that one order explains: one alone may be a fault's"};
  Constant layout_worth{.5, "of content that says an order of axes: half of it is not a mask's"};
};

/// Names, by their words: 0 … 1.
struct NameLimits {
  Constant of_number{.5, "weight of a number beside a word: numbers are counted differently from 0 or 1 on"};
  Constant of_filler{.25, "weight of words that say little (model, module, proj)"};
  Constant all_words{.6, "share of all words in the likeness, the rest is the last component's"};
  Constant other_block{.2, "left of the likeness when the blocks' numbers differ: the name itself says it is another"};
  Constant other_call{.8, "left of it when the call differs: sides count calls differently"};
  Constant unlearned{.3, "most that a name is like when another name of its kind was learned"};
  Constant layout{.3, "distance past which a learned name's layout is taken, not the one that content suggests"};
  Constant majority{.6, "of the pairs that voted: a name is learned when most of them agree"};
  Constant looked_up{.45, "likeness from which a name alone makes a link"};
  Constant most_links{8, "links by name of one candidate tensor"};
  Constant most_compared{3e6, "product of the numbers of names: beyond, only equal names are looked up (seconds)"};
};

/// Content, name and order as independent witnesses: 1 - (1 - a content) (1 - b name) (1 - c order).
struct EvidenceLimits {
  Constant content{.95, "content alone can be another tensor's: a stale buffer, a module's result passed on"};
  Constant name{.5, "a name alone reaches the least confidence and no more"};
  Constant order{.35, "order alone never pairs"};
  Constant firm_name_from{.5, "likeness from which a name vouches for its neighbours' order"};
  Constant firm_name{.8, "likeness from which it does so fully"};
  Constant least_distance{1e-6, "rounding of fp32 samples: smaller distances are not told apart"};
  Constant apart{1.5, "times the smaller distance: tensors nearer to each other than that cannot be told apart"};
  Constant far_better{.3, "of a rival's distance: content is distinct"};
  Constant similar_twin{.05, "by how much less similar a twin's name must be"};
  Constant unnamed_twin{.85, "worth of content shared with a tensor whose name is as like"};
  Constant telling{.5, "likeness from which a name is evidence of its own"};
  Constant telling_alone{.65, "the same where content does not speak"};
  Constant weak_name{.5, "left of a name that is not telling enough there"};
  Constant off_noise{10, "times the distance around it: an error does not heal downstream"};
  Constant least_noise{1e-3, "distance: half a bf16 rounding"};
  Constant look_alike{.06, "distance: past it, where a fault has blurred everything, look-alikes abound"};
  Constant op_content{.1, "distance past which an op's number (add.3) says nothing: programs number their own ops"};
  Constant op_name{.45, "most that such a name is worth: below `telling`"};
  Constant content_speaks{.5, "of content: below, its agreement is worth less than what speaks against it"};
  Constant silent{.3, "of agreement: below, content says nothing"};
  Constant doubtful{.45, "most confidence of what is doubtful: below the least that pairs"};
  Constant by_learned_name{.85, "most confidence of a pair by a learned name alone"};
  Constant by_name{.7, "the same of a likely name"};
  Constant ambiguous{.1, "by which a rival's name must be less like"};
  Constant said{.4, "likeness from which a name is mentioned in the evidence"};
};

/// The chain of pairs in order, and what crosses it.
struct ChainLimits {
  Constant confidence{.5, "pairs below it are more often wrong than right, if confidences are probabilities"};
  Constant learn_from{.8, "confidence of pairs that teach names"};
  Constant learn_agreement{.6, "agreement of such pairs"};
  Constant learn_distance{.1, "distance of such pairs: above, a fault has blurred them"};
  Constant of_name{2, "powers of ten of distance that an equal name weighs: content decides where it can"};
  Constant of_module{.3, "the same for each side that is a module's result: it is where others look for a value"};
  Constant of_dtype{.05, "the same for equal dtypes: a value and its cast have equal contents"};
  Constant of_layout{.5, "the same against a rearrangement"};
  Constant earlier{1e-7, "the same against each place: of equals the earliest, where the value was made"};
  Constant least{.9, "weight of a link in the chain; .65 is what a link has for nothing"};
  Constant second_choice{.95, "of the best weight: a link that is second choice to both its tensors fills gaps only"};
  Constant neighbours{4, "pairs on either side whose median distance is the noise there"};
  Constant certain_agreement{.8, "of a link across the chain: q, k and v in another order"};
  Constant certain_confidence{.6, "the same, without its order"};
  Constant window{64, "places that a learned name may lie out of order"};
  Constant of_weight{.01, "of a confidence, for each unit of weight: orders links that are equally sure"};
  Constant fused_part{.8, "agreement from which a note says that a tensor is part of a fused one"};
};

/// What the programs say (pair/port_pairing_content.cpp, pair/order.cpp).
struct ProgramLimits {
  Constant crossed{.3, "distance past which equal names that cross in time are other tensors"};
  Constant sure{.8, "confidence from which a pair says where others can lie"};
  Constant recorded_again{1e-3, "distance: a value returned later (a cache) is the same up to rounding"};
  Constant beside{3, "places that a repeated value (dropout at inference) may lie away"};
  Constant contradictions{.1, "of the pairs that depend on others: above, the list is not in execution order"};
};

/// Families of names, and what is paired in step with the replay (pair/families.cpp, pair/in_step.cpp).
struct FamilyLimits {
  Constant least_votes{2, "families that agree on how far a block's numbers lie apart: one always agrees with itself"};
  Constant majority{.6, "of such families; as for names"};
  Constant agrees{.05, "relative L2 on the port's own earlier values: as `content.same`, without what was inherited"};
  Constant rounds{6, "replays on the port's values; one passes all faults of learned families at once"};
  Constant of_one_name{4, "families that one name of the candidate's stands for: a module's result has as many names"};
  Constant carried{.7, "confidence of a learned name whose content differs and that nothing compared follows from"};
  Constant carried_on{.85, "the same where what the candidate computes from it agrees: only so would it"};
  Constant carried_sure{.95, "the same where its own content agrees"};
};

/// Pairs on trial (pair/trials.cpp).
struct TrialLimits {
  Constant ends{3, "values that do not come out whose stretches are searched: the first holds the fault nearly always"};
  Constant boundaries{
      32, "of a stretch, from its beginning, that some free tensor fits: more than an attention layer's ops"};
  Constant candidates{24, "free tensors that fit, from there: as `content.most_links`"};
  Constant followers{16,
                     "boundaries that the program goes on for: past attention, or a feed-forward layer; of modules as "
                     "many more as the port recorded fewer"};
  Constant least_gain{1.5, "powers of ten over all: a bf16 value (.005) that was unlike (.3)"};
  Constant certain{2, "values that agree with an earlier pair and not without: it needs no later one to follow"};
  Constant agrees{.5, "of a power of ten, from which a value agrees with the pair and not without"};
  Constant sure{3, "values that agree with a pair and not without: no other pair is tried beside it"};
  Constant sure_gain{2,
                     "powers of ten that each of them gains: less than a neighbour's value gives, alike but another"};
  Constant clearly{1.05,
                   "by which a later boundary, or tensor, must gain more: copies, and gates of all blocks, gain alike"};
  Constant confidence{.85, "as of a learned name when what follows agrees: only so would it"};
  Constant by_size{.6, "confidence of a result that is the only tensor left of its size, behind all others"};
  Constant most{64, "pairs on trial in one comparison"};
  Constant work{2e11,
                "multiplications that they may take with the replays between them, some 5 s on two cores: small models "
                "are tried whole"};
};

/// Boundaries that moved (pair/moved.cpp).
struct MovedLimits {
  Constant far{.05, "relative L2 on the port's own earlier values: as `family.agrees`; another value is further off"};
  Constant clearly{10, "times nearer: a value that heals; a norm behind it hides a factor up to its eps"};
  Constant followers{16, "values looked at that follow from one: as `trial.followers`"};
  Constant exchanged{
      2, "times nearer, for siblings paired crosswise: two wrong values in place of right ones bring none nearer"};
  Constant places{12, "of the same shape between two pairs: more than a norm's or a feed-forward layer's ops"};
  Constant most{32, "stretches searched in vain: a port that is off in more places has another fault"};
  Constant folded_units{256,
                        "unit roundoffs, at most `folded`: what a fold leaves and what is behind it are off by, in "
                        "fp32 as much as a softmax and two products amplify roundings"};
  Constant folded{
      .01, "relative L2 that constants leave: two roundings to bf16 and a weight's, .0017 each, and as much again"};
  Constant rounds{4, "in which a group grows: q and its norm, then k's and its norm"};
  Constant group{16, "values that are changed together: q, k and what a rotation is made of"};
  Constant folded_elements{8, "of a channel, for which two constants are fitted: chance leaves .01 of none"};
  Constant shown{3, "of the values that moved alike are named in a note"};
  Constant work{1e11, "multiplications, some 3 s on two cores: half of what trials may take"};
};

/// What running an op costs, in multiplications of a matrix product (pair/segments.cpp).
struct WorkLimits {
  Constant element{32,
                   "an element of an elementwise op: fp64 on two cores, 1 ns for tanh, 1/30 ns for a multiplication"};
  Constant step{
      2e5,
      "a step of a replay, however small its op: 5 us, for arguments, dispatch, what is let go. A block of 4251 "
      "such ops was replayed 900 times over by a budget that did not count it"};
};

struct PairLimits {
  ContentLimits content;
  NameLimits name;
  EvidenceLimits evidence;
  ChainLimits chain;
  ProgramLimits program;
  FamilyLimits family;
  TrialLimits trial;
  MovedLimits moved;
  WorkLimits work;
};

inline constexpr PairLimits kPairLimits;

}  // namespace parity
